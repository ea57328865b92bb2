"""Values of the control API: view, requests, answers, errors."""
