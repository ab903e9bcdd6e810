"""The application: which address does what. Pages are templates, the rest is JSON and PNG."""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from pinprick import __version__
from pinprick.errors import BadInput, PinprickError, one_line
from pinprick.web.attack_job import SWITCHES, AttackJob, AttackRequest
from pinprick.web.choices import list_attacks
from pinprick.web.job_queue import Busy, Job
from pinprick.web.live_events import EventStreams
from pinprick.web.png_bytes import png_bytes, to_bytes
from pinprick.web.reports import POLICY as REPORT_POLICY
from pinprick.web.reports import attack_report, store_report
from pinprick.web.safety import App, Rules, Safety
from pinprick.web.stores import Stores
from pinprick.web.uploads import (
    PICTURE_BYTES,
    numbers_field,
    read_body,
    read_fields,
    text_field,
)
from pinprick.web.why_job import WhyJob
from pinprick.web.workbench import Workbench, scores

_HERE = Path(__file__).parent
_PATIENCE = 60.0  # seconds that a question may wait for the device
_NAME = re.compile(r"[^\w .-]+")
_FOREVER = {"cache-control": "private, max-age=31536000, immutable"}


def make_app(workbench: Workbench, rules: Rules, folder: Path) -> App:
    """The whole application, with every request checked; stores are looked for in ``folder``."""
    pages = _Pages(workbench, Stores(folder))
    app = Starlette(
        routes=pages.routes(),
        exception_handlers={PinprickError: _refused, 404: _not_found},
    )
    return Safety(app, rules)


class _Pages:
    """What answers each address."""

    def __init__(self, workbench: Workbench, stores: Stores) -> None:
        self._workbench, self._stores = workbench, stores
        self._streams = EventStreams(workbench.queue)
        templates = Environment(
            loader=FileSystemLoader(_HERE / "templates"),
            autoescape=select_autoescape(),
            undefined=StrictUndefined,
        )
        choices = {"models": workbench.models, "attacks": list_attacks(), "version": __version__}
        self._pages = {
            name: templates.get_template(f"{name}.html").render(**choices, page=name)
            for name in ("attack", "compare", "stores")
        }

    def routes(self) -> list[Any]:
        return [
            Route("/", self._page("attack")),
            Route("/compare", self._page("compare")),
            Route("/stores", self._page("stores")),
            Route("/stores/list", self.store_names),
            Route("/stores/board", self.board),
            Route("/stores/cells", self.cells),
            Route("/stores/rows", self.rows),
            Route("/stores/report.html", self.store_report),
            Route("/events", self._streams.answer),
            Route("/pictures", self.add_picture, methods=["POST"]),
            Route("/look", self.look, methods=["POST"]),
            Route("/prepared.png", self.prepared),
            Route("/classes", self.classes),
            Route("/jobs", self.start, methods=["POST"]),
            Route("/jobs/{id}", self.job),
            Route("/jobs/{id}/stop", self.stop, methods=["POST"]),
            Route("/jobs/{id}/why", self.why, methods=["POST"]),
            Route("/jobs/{id}/pixels", self.pixels, methods=["POST"]),
            Route("/jobs/{id}/steps/{number:int}.png", self.step),
            Route("/jobs/{id}/steps/{number:int}.json", self.step_scores),
            Route("/jobs/{id}/clean.png", self.clean),
            Route("/jobs/{id}/maps/{name}.png", self.map),
            Route("/jobs/{id}/adversarial.png", self.adversarial),
            Route("/jobs/{id}/result.json", self.result),
            Route("/jobs/{id}/report.html", self.report),
            Mount("/static", StaticFiles(directory=_HERE / "static")),
        ]

    def _page(self, name: str) -> Callable[[Request], Any]:
        async def page(_: Request) -> Response:
            return HTMLResponse(self._pages[name])

        return page

    async def add_picture(self, request: Request) -> Response:
        """Take in the body as a picture."""
        data = await read_body(request, PICTURE_BYTES)
        name = _NAME.sub("", Path(request.query_params.get("name", "")).name)[:60].strip(" .")
        number = self._workbench.add_picture(data, name or "picture")
        return JSONResponse({"id": number, "name": name or "picture"})

    async def look(self, request: Request) -> Response:
        """What a model sees in a picture before any attack."""
        fields = await read_fields(request)
        picture, model = text_field(fields, "picture"), text_field(fields, "model")

        def question() -> dict[str, Any]:
            prepared = self._workbench.prepare(picture, model)
            classifier = self._workbench.load(model)
            return {
                "size": list(prepared.images.shape[1:]),
                **scores(prepared.logits, classifier),
            }

        self._workbench.check_model(model)
        return JSONResponse(await self._ask(question))

    async def prepared(self, request: Request) -> Response:
        """The picture as a model sees it."""
        picture, model = (request.query_params.get(name, "") for name in ("picture", "model"))
        self._workbench.check_model(model)

        def question() -> bytes:
            return png_bytes(to_bytes(self._workbench.prepare(picture, model).images[0]))

        return _png(await self._ask(question))

    async def classes(self, request: Request) -> Response:
        """The names of a model's classes."""
        model = request.query_params.get("model", "")
        self._workbench.check_model(model)
        return JSONResponse(await self._ask(lambda: list(self._workbench.load(model).classes)))

    async def start(self, request: Request) -> Response:
        """Queue an attack."""
        asked = AttackRequest.read(await read_fields(request), self._workbench)
        return self._submit(AttackJob(asked, self._workbench))

    async def why(self, request: Request) -> Response:
        """Queue the explanation of a finished attack."""
        return self._submit(WhyJob(self._attack(request), self._workbench))

    async def job(self, request: Request) -> Response:
        return JSONResponse(self._job(request).document())

    async def stop(self, request: Request) -> Response:
        job = self._job(request)
        self._workbench.queue.stop(job)
        return JSONResponse(job.summary())

    async def pixels(self, request: Request) -> Response:
        """What the model says with some changed pixels switched off."""
        job, fields = self._attack(request), await read_fields(request)
        off = numbers_field(fields, "off", below=SWITCHES)
        return JSONResponse(await self._ask(lambda: job.switch_off(off)))

    def step(self, request: Request) -> Response:
        trace = self._attack(request).trace
        picture = None if trace is None else trace.picture(request.path_params["number"])
        if picture is None:
            raise BadInput("there is no such step")
        return _png(png_bytes(picture))

    async def step_scores(self, request: Request) -> Response:
        """What the model said of the image of a step."""
        job, number = self._attack(request), request.path_params["number"]
        return JSONResponse(await self._ask(lambda: job.step_scores(number)))

    def clean(self, request: Request) -> Response:
        trace = self._attack(request).trace
        if trace is None:
            raise BadInput("the attack has not started yet")
        return _png(png_bytes(trace.clean))

    def map(self, request: Request) -> Response:
        job, name = self._job(request), request.path_params["name"]
        if not isinstance(job, WhyJob) or name not in job.maps:
            raise BadInput("there is no such map")
        return _png(png_bytes(job.maps[name]))

    def adversarial(self, request: Request) -> Response:
        job = self._attack(request)
        data = png_bytes(to_bytes(job.finished().adversarial[0]), small=True)
        return _download(data, "image/png", f"{job.name}-adversarial.png")

    def result(self, request: Request) -> Response:
        job = self._attack(request)
        job.finished()
        return _download(job.result_json.encode(), "application/json", "result.json")

    def report(self, request: Request) -> Response:
        job = self._attack(request)
        return _download(attack_report(job).encode(), "text/html", f"{job.name}-report.html")

    def store_names(self, _: Request) -> Response:
        return JSONResponse({"names": self._stores.names(), "folder": self._stores.root.name})

    def board(self, request: Request) -> Response:
        unit = request.query_params.get("unit", "pixels")
        return JSONResponse(self._stores.board(_store(request), unit))

    def cells(self, request: Request) -> Response:
        return JSONResponse(self._stores.cells(_store(request)))

    def rows(self, request: Request) -> Response:
        cell = request.query_params.get("cell", "")
        return JSONResponse(self._stores.rows(_store(request), cell))

    def store_report(self, request: Request) -> Response:
        """The report of a store, in a sandbox."""
        page = store_report(self._stores.path(_store(request)))
        return HTMLResponse(page, headers={"content-security-policy": REPORT_POLICY})

    def _job(self, request: Request) -> Job:
        return self._workbench.queue.find(request.path_params["id"])

    def _attack(self, request: Request) -> AttackJob:
        job = self._job(request)
        if not isinstance(job, AttackJob):
            raise BadInput("that job is no attack")
        return job

    def _submit(self, job: Job) -> Response:
        self._workbench.queue.submit(job)
        return JSONResponse(job.summary(), status_code=202)

    async def _ask(self, question: Callable[[], Any]) -> Any:
        """The answer of the thread that has the device."""
        future = asyncio.wrap_future(self._workbench.queue.ask(question))
        try:
            return await asyncio.wait_for(future, _PATIENCE)
        except TimeoutError:
            raise Busy("the device is busy; try again when the running job has ended") from None


def _store(request: Request) -> str:
    return str(request.query_params.get("store", ""))


def _png(data: bytes) -> Response:
    return Response(data, media_type="image/png", headers=_FOREVER)


def _download(data: bytes, kind: str, name: str) -> Response:
    plain = name.encode("ascii", "ignore").decode() or "file"
    return Response(
        data, media_type=kind, headers={"content-disposition": f'attachment; filename="{plain}"'}
    )


async def _refused(_: Request, error: Exception) -> Response:
    status = 429 if isinstance(error, Busy) else 400
    return JSONResponse({"error": one_line(error)}, status_code=status)


async def _not_found(_: Request, __: Exception) -> Response:
    return JSONResponse({"error": "there is no such page"}, status_code=404)
