"""Reports for the browser: of one attack to be downloaded, of a store to be looked through.

A report brings scripts of its own, so it is served in a sandbox: it has no origin, and cannot reach
this server.
"""

import tempfile
import threading
from pathlib import Path

from pinprick.pages.report_page import make_report
from pinprick.web.attack_job import AttackJob
from pinprick.web.job_queue import Busy
from pinprick.web.png_bytes import png_bytes, to_bytes

POLICY = (
    "sandbox allow-scripts allow-downloads allow-popups; default-src 'none'; "
    "script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_IMAGES = 300  # of a store
_one_at_a_time = threading.Lock()
_room = threading.BoundedSemaphore(3)  # the one being made and those that wait, a thread each


def attack_report(job: AttackJob) -> str:
    """The report of a finished attack, one HTML file."""
    result = job.finished()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for kind, images in (("clean", result.images), ("adversarial", result.adversarial)):
            picture = png_bytes(to_bytes(images[0]), small=True)
            (folder / f"{job.name}-{kind}.png").write_bytes(picture)
        (folder / "result.json").write_text(job.result_json)
        return make_report([folder], title=job.title, made_from="an attack of pinprick web").html


def store_report(folder: Path) -> str:
    """The report of a store with its first images, one HTML file; ``Busy`` if too many wait."""
    if not _room.acquire(blocking=False):
        raise Busy("several reports of stores are being made; try again in a minute")
    try:
        with _one_at_a_time:
            name = folder.name  # not the whole path, which other machines need not know
            return make_report([folder], images=_IMAGES, title=name, made_from=name).html
    finally:
        _room.release()
