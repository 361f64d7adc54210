"""Checks of the console for schemathesis, besides its own, with a token of each role in turn.

`SCHEMATHESIS_HOOKS` names this module, and `CONSOLE_TOKENS` has the tokens.
"""

import collections
import itertools
import json
import os

import schemathesis

ROLES = ["viewer", "sender", "admin"]
TOKENS = json.loads(os.environ["CONSOLE_TOKENS"])
turns = collections.defaultdict(lambda: itertools.cycle(ROLES))


@schemathesis.hook
def before_call(context, case, kwargs):
    """Gives a request the next role, and lets none wait for events."""
    case.headers["authorization"] = f"Bearer {TOKENS[next(turns[case.operation.label, case.method])]}"
    if case.query and "wait" in case.query:
        del case.query["wait"]


@schemathesis.check
def role_is_enough(context, response, case):
    """A request above its role is refused, whatever it holds, and no other one."""
    if case.method.lower() != case.operation.method.lower():
        # OPTIONS of the whole service says the methods, to load balancers too (RFC 9110 §9.3.7).
        is_whole = case.method.lower() == "options" and case.operation.path == "/"
        assert response.status_code in ((200,) if is_whole else (403, 404, 405)), f"{case.method} got {response.status_code}"
        return
    least = case.operation.definition.raw.get("x-role", "none")
    token = response.request.headers["authorization"].removeprefix("Bearer ")
    (role,) = [role for role in ROLES if TOKENS[role] == token]
    is_refused = response.status_code == 403 and "this needs the role" in response.text
    assert is_refused == (least != "none" and ROLES.index(role) < ROLES.index(least)), f"{role} got {response.status_code}"
    assert response.status_code != 401 or least == "none", f"the token of {role} ended"
