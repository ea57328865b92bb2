"""Where figures are read: GET /metrics, and nothing else."""

from __future__ import annotations

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

PATH = "/metrics"


def metrics_app(registry: CollectorRegistry) -> Starlette:
    """In the loop of the table: asked by a few, and soon answered."""

    async def figures(request: Request) -> Response:
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    # A page from elsewhere that points a name of its own at the loopback reads nothing.
    hosts = Middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"])
    return Starlette(routes=[Route(PATH, figures, methods=["GET"])], middleware=[hosts])
