// Answers, with what Go's module database is made of, what the tests of the record ask:
// one JSON value in, one out, by the word on the command line.
package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

const cosignature = 4

// cosigner signs and checks as C2SP tlog-cosignature says; the note package knows no such key.
type cosigner struct {
	name   string
	public ed25519.PublicKey
	secret ed25519.PrivateKey
	time   uint64
}

func (c cosigner) Name() string { return c.name }

func (c cosigner) KeyHash() uint32 {
	sum := sha256.Sum256(append([]byte(c.name+"\n\x04"), c.public...))
	return binary.BigEndian.Uint32(sum[:4])
}

func message(time uint64, text []byte) []byte {
	return append([]byte(fmt.Sprintf("cosignature/v1\ntime %d\n", time)), text...)
}

func (c cosigner) Verify(text, signature []byte) bool {
	if len(signature) != 8+ed25519.SignatureSize {
		return false
	}
	time := binary.BigEndian.Uint64(signature)
	return ed25519.Verify(c.public, message(time, text), signature[8:])
}

func (c cosigner) Sign(text []byte) ([]byte, error) {
	signature := make([]byte, 8)
	binary.BigEndian.PutUint64(signature, c.time)
	return append(signature, ed25519.Sign(c.secret, message(c.time, text))...), nil
}

func (c cosigner) key() string {
	key := append([]byte{cosignature}, c.public...)
	return fmt.Sprintf("%s+%08x+%s", c.name, c.KeyHash(), base64.StdEncoding.EncodeToString(key))
}

func verifier(key string) (note.Verifier, error) {
	parts := strings.SplitN(key, "+", 3)
	data, err := base64.StdEncoding.DecodeString(parts[len(parts)-1])
	if err != nil || len(data) == 0 || data[0] != cosignature {
		return note.NewVerifier(key)
	}
	c := cosigner{name: parts[0], public: ed25519.PublicKey(data[1:])}
	if c.key() != key {
		return nil, fmt.Errorf("no key: %s", key)
	}
	return c, nil
}

type openAsk struct {
	Keys  []string
	Notes [][]byte
}

type opened struct {
	Text  string
	Names []string
	Why   string
}

func open(ask openAsk) []opened {
	var known []note.Verifier
	for _, key := range ask.Keys {
		one, err := verifier(key)
		if err != nil {
			log.Fatal(err)
		}
		known = append(known, one)
	}
	answers := []opened{}
	for _, data := range ask.Notes {
		found, err := note.Open(data, note.VerifierList(known...))
		if err != nil {
			answers = append(answers, opened{Why: err.Error()})
			continue
		}
		answer := opened{Text: found.Text}
		for _, signature := range found.Sigs {
			answer.Names = append(answer.Names, signature.Name)
		}
		answers = append(answers, answer)
	}
	return answers
}

type signAsk struct {
	Text, Name, Witness string
	Time                uint64
}

type signedNote struct {
	Keys []string
	Note string
}

func sign(ask signAsk) signedNote {
	secret, key, err := note.GenerateKey(rand.Reader, ask.Name)
	if err != nil {
		log.Fatal(err)
	}
	signer, err := note.NewSigner(secret)
	if err != nil {
		log.Fatal(err)
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		log.Fatal(err)
	}
	witness := cosigner{ask.Witness, public, private, ask.Time}
	data, err := note.Sign(&note.Note{Text: ask.Text}, signer, witness)
	if err != nil {
		log.Fatal(err)
	}
	return signedNote{[]string{key, witness.key()}, string(data)}
}

type treeAsk struct {
	Records   [][]byte
	Inclusion []struct {
		Index, Size int64
		Proof       tlog.RecordProof
	}
	Consistency []struct {
		Old, New int64
		Proof    tlog.TreeProof
	}
}

type tree struct {
	Roots                  []tlog.Hash
	Inclusion, Consistency []string
}

func same(one, other []tlog.Hash) bool {
	if len(one) != len(other) {
		return false
	}
	for i := range one {
		if one[i] != other[i] {
			return false
		}
	}
	return true
}

// verdict is empty where the proof is the one that Go makes, and right.
func verdict(given, made []tlog.Hash, making, checking error) string {
	switch {
	case making != nil:
		return making.Error()
	case checking != nil:
		return checking.Error()
	case !same(given, made):
		return "right, and another one"
	}
	return ""
}

func grow(ask treeAsk) tree {
	var stored []tlog.Hash
	reader := tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		var found []tlog.Hash
		for _, index := range indexes {
			found = append(found, stored[index])
		}
		return found, nil
	})
	roots := []tlog.Hash{{}}
	for i, record := range ask.Records {
		hashes, err := tlog.StoredHashes(int64(i), record, reader)
		if err != nil {
			log.Fatal(err)
		}
		stored = append(stored, hashes...)
		root, err := tlog.TreeHash(int64(i)+1, reader)
		if err != nil {
			log.Fatal(err)
		}
		roots = append(roots, root)
	}
	answer := tree{roots[1:], []string{}, []string{}}
	for _, one := range ask.Inclusion {
		made, making := tlog.ProveRecord(one.Size, one.Index, reader)
		leaf := tlog.RecordHash(ask.Records[one.Index])
		checking := tlog.CheckRecord(one.Proof, one.Size, roots[one.Size], one.Index, leaf)
		answer.Inclusion = append(answer.Inclusion, verdict(one.Proof, made, making, checking))
	}
	for _, one := range ask.Consistency {
		made, making := tlog.ProveTree(one.New, one.Old, reader)
		checking := tlog.CheckTree(one.Proof, one.New, roots[one.New], one.Old, roots[one.Old])
		answer.Consistency = append(answer.Consistency, verdict(one.Proof, made, making, checking))
	}
	return answer
}

func main() {
	var openAsk openAsk
	var signAsk signAsk
	var treeAsk treeAsk
	words := map[string]struct {
		ask    interface{}
		answer func() interface{}
	}{
		"open": {&openAsk, func() interface{} { return open(openAsk) }},
		"sign": {&signAsk, func() interface{} { return sign(signAsk) }},
		"tree": {&treeAsk, func() interface{} { return grow(treeAsk) }},
	}
	word, found := words[os.Args[1]]
	if !found {
		log.Fatalf("no such word: %s", os.Args[1])
	}
	if err := json.NewDecoder(os.Stdin).Decode(word.ask); err != nil {
		log.Fatal(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(word.answer()); err != nil {
		log.Fatal(err)
	}
}
