"""Structured fields, from RFC 9651: a list is parsed as its section 4.2 says.

Independent of the program on purpose. Strict: what the RFC fails, fails.
"""

import base64
import binascii
import re
from decimal import Decimal

KEY = re.compile(r"[a-z*][a-z0-9_.*-]*")
NUMBER = re.compile(r"-?(\d{1,12}\.\d{1,3}|\d{1,15})(?![\d.])")
TOKEN = re.compile(r"[A-Za-z*][A-Za-z0-9!#$%&'*+.^_`|~:/-]*")
STRING = re.compile(r'"((?:[ !#-\[\]-~]|\\["\\])*)"')
BYTES = re.compile(r":([A-Za-z0-9+/=]*):")
BOOLEAN = re.compile(r"\?([01])")


class Token(str):
    pass


class Parser:
    def __init__(self, text):
        text.encode("ascii")
        self.text = text.strip(" ")
        self.at = 0

    def take(self, pattern, what):
        found = pattern.match(self.text, self.at)
        if not found:
            raise ValueError("no %s at %d in %r" % (what, self.at, self.text))
        self.at = found.end()
        return found

    def skip(self, characters):
        while self.rest[:1] and self.rest[0] in characters:
            self.at += 1

    @property
    def rest(self):
        return self.text[self.at:]

    def bare(self):
        first = self.rest[:1]
        if first == '"':
            return re.sub(r"\\(.)", r"\1",
                          self.take(STRING, "string").group(1))
        if first == ":":
            try:
                return base64.b64decode(self.take(BYTES, "bytes").group(1))
            except binascii.Error as error:
                raise ValueError("no base64") from error
        if first == "?":
            return self.take(BOOLEAN, "boolean").group(1) == "1"
        if first == "-" or first.isdigit():
            text = self.take(NUMBER, "number").group(0)
            return Decimal(text) if "." in text else int(text)
        return Token(self.take(TOKEN, "item").group(0))

    def item(self):
        value = self.bare()
        parameters = {}
        while self.rest.startswith(";"):
            self.at += 1
            self.skip(" ")
            key = self.take(KEY, "key").group(0)
            parameters.pop(key, None)
            parameters[key] = True
            if self.rest.startswith("="):
                self.at += 1
                parameters[key] = self.bare()
        return value, parameters

    def list(self):
        members = []
        while self.rest:
            members.append(self.item())
            self.skip(" \t")
            if not self.rest:
                break
            if not self.rest.startswith(","):
                raise ValueError("no comma at %d in %r" % (self.at, self.text))
            self.at += 1
            self.skip(" \t")
            if not self.rest:
                raise ValueError("a comma ends %r" % self.text)
        return members


def parse_list(text):
    """[(item, {parameter: value})]; no inner lists. Raises ValueError."""
    return Parser(text).list()
