"""The e2e tests' harness serves here as well."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../e2e"))
