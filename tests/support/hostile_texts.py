"""Texts of strangers that shall stay texts, and what tells of an attack that came through."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from course_site import Tab

ATTACK = """<b>bold</b><script>top.hacked = 1; self.hacked = 1</script>
<img src="x" onerror="top.hacked = 2; self.hacked = 2"><svg onload="self.hacked = 3"></svg>
<meta http-equiv="refresh" content="0; url=OTHER"><img src="OTHER">
<a href="javascript:self.hacked = 4">a</a>
<iframe srcdoc="<script>top.hacked = 5; self.hacked = 5</script>"></iframe>
<form action="OTHER"><input name="a"></form><link rel="stylesheet" href="OTHER">
</title></textarea>"""

SCRIPTS = (
    "<script>self.hacked = 1</script>",
    "<script src=OTHER></script>",
    "<img src=x onerror=self.hacked=1>",
    "<svg onload=self.hacked=1>",
    "<svg><script>self.hacked=1</script></svg>",
    "<svg><animate onbegin=self.hacked=1 attributeName=x dur=1s>",
    "<math><mtext><table><mglyph><style><img src=x onerror=self.hacked=1>",
    "<iframe srcdoc='<script>top.hacked=1</script>'></iframe>",
    "<iframe src=javascript:top.hacked=1></iframe>",
    "<object data=javascript:self.hacked=1></object>",
    "<embed src=javascript:self.hacked=1>",
    "<a href=javascript:self.hacked=1 autofocus>a</a>",
    "<form action=javascript:self.hacked=1><button autofocus>b</button></form>",
    "<input autofocus onfocus=self.hacked=1>",
    "<details open ontoggle=self.hacked=1>",
    "<video><source onerror=self.hacked=1></video>",
    "<body onload=self.hacked=1>",
    "<style>* { background: url(OTHER) }</style>",
    "<link rel=stylesheet href=OTHER>",
    "<base href=OTHER>",
    "<meta http-equiv=refresh content='0; url=OTHER'>",
    "<template><script>self.hacked=1</script></template>",
    "<noscript><p title='</noscript><img src=x onerror=self.hacked=1>'>",
    "javascript:self.hacked=1",
    "data:text/html,<script>self.hacked=1</script>",
    "${self.hacked = 1}",
    "{{self.hacked = 1}}",
    "`;self.hacked = 1;`",
    "';self.hacked = 1;//",
    "\\u003cscript>self.hacked=1\\u003c/script>",
)
"""Texts that are scripts if a page takes them for markup or for code."""

WAYS_OUT = ("", '">', "'>", "</textarea>", "</title></code></script>", "-->", "]]>", "\n")
"""Ends of the place in which a text may stand."""

LETTERS = (
    "\x00",
    "a\x00<b>",
    "\x1b[2J\x1b]0;title\x07",
    "\u202e)1 = x(tnirp",
    "x = 1 # \u2066\u2069 \u202e",
    "a\u200bb\ufeffc\u00ad",
    "\u2028\u2029",
    "\ufffe\uffff",
    "\u3164\u115f\uffa0",
    "e" + "\u0301" * 500,
    "%00%0a%3Cscript%3E",
    "__proto__",
    "constructor",
    "toString",
    "#tn1.AAAA.00000000",
    "\\",
    "\\1 $1 $& $$",
    "%s %(a)s {0} {a}",
    "nan",
    "x" * 5000,
)
"""Letters without a form, names of parts of JavaScript, and signs of templates."""


def hostile_texts() -> list[str]:
    """The texts; some of ``SCRIPTS`` stand behind each of the ways out."""
    mixed = [way + SCRIPTS[i % len(SCRIPTS)] for i, way in enumerate(WAYS_OUT * 13)]
    return list(dict.fromkeys([ATTACK, *SCRIPTS, *mixed, *LETTERS]))


def hacked(tab: Tab) -> list[Any]:
    """What scripts have left in the page and its frames."""
    told = [frame.evaluate("self.hacked ?? null") for frame in tab.page.frames]
    return [one for one in told if one is not None]


@contextlib.contextmanager
def other_host() -> Iterator[tuple[str, list[str]]]:
    """The address of another host, and the requests that came to it."""
    heard: list[str] = []

    class Other(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard.append(self.path)
            self.send_response(200)
            self.send_header("Access-Control-Allow-Origin", "*")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """No words."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Other) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/", heard
        server.shutdown()
        thread.join()
