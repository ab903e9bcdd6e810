"""Who may ask: host, origin, token, rate, and the headers of every answer."""

import re
import struct
import zlib
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from pinprick.errors import BadInput
from pinprick.web import safety
from pinprick.web.app import make_app
from pinprick.web.safety import Rules, Safety, is_loopback
from pinprick.web.uploads import JSON_BYTES, PICTURE_BYTES
from pinprick.web.workbench import Workbench
from web.conftest import HOME, MODEL, picture_bytes


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "10.0.0.7"])
def test_another_host_is_refused(client: TestClient, host: str) -> None:
    answer = client.get("/", headers={"host": host})
    assert answer.status_code == 421
    assert "address" in answer.text


@pytest.mark.parametrize("host", ["localhost:8431", "127.0.0.1:8431", "[::1]:8431"])
def test_every_name_of_this_machine_is_served(client: TestClient, host: str) -> None:
    headers = {"host": host, "origin": f"http://{host}"}
    assert client.get("/", headers=headers).status_code == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:9999", ""])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_another_origin_is_refused(client: TestClient, origin: str, method: str) -> None:
    answer = client.request(method, "/jobs", headers={"origin": origin})
    assert answer.status_code == 403


def test_a_post_without_an_origin_is_refused(workbench: Workbench) -> None:
    app = make_app(workbench, Rules(host="127.0.0.1"), Path.cwd())
    client = TestClient(app, base_url=HOME)
    assert client.post("/pictures", content=picture_bytes()).status_code == 403
    assert client.get("/").status_code == 200


def test_a_picture_cannot_be_embedded_by_another_site(client: TestClient) -> None:
    answer = client.get("/static/icon.svg", headers={"sec-fetch-site": "cross-site"})
    assert answer.status_code == 403


def test_beyond_loopback_nothing_is_served_without_the_token(workbench: Workbench) -> None:
    app = make_app(workbench, Rules(host="0.0.0.0", token="secret"), Path.cwd())
    client = TestClient(app, base_url="http://10.0.0.7:8431", follow_redirects=False)
    for path in ("/", "/events", "/static/style.css", "/?token=wrong"):
        assert client.get(path).status_code == 401, path
    entered = client.get("/?token=secret")
    assert (entered.status_code, entered.headers["location"]) == (303, "/")
    assert re.search("HttpOnly.*SameSite=Strict", entered.headers["set-cookie"])
    assert client.get("/").status_code == 200
    assert client.get("/", headers={"host": "evil.example"}).status_code == 421


def test_the_token_is_found_beside_malformed_cookies_of_other_servers(
    workbench: Workbench,
) -> None:
    app = make_app(workbench, Rules(host="0.0.0.0", token="secret"), Path.cwd())
    client = TestClient(app, base_url="http://10.0.0.7:8431")
    for others in ('state={"a": "b"}', "flag", "name=ä"):
        cookie = f"{others}; pinprick_token_8431=secret".encode("latin-1")
        assert client.get("/", headers={"cookie": cookie}).status_code == 200, others


def test_servers_on_one_host_have_a_cookie_each(workbench: Workbench) -> None:
    for port in (8431, 9000):
        app = make_app(workbench, Rules(host="0.0.0.0", token=f"secret-{port}"), Path.cwd())
        client = TestClient(app, base_url=f"http://10.0.0.7:{port}", follow_redirects=False)
        entered = client.get(f"/?token=secret-{port}").headers["set-cookie"]
        assert entered.startswith(f"pinprick_token_{port}=secret-{port};")


def test_a_machine_with_capitals_in_its_name_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "MyLaptop")
    everywhere, named = Rules(host="0.0.0.0", token="a"), Rules(host="MyLaptop.lan", token="a")
    assert everywhere.knows_host("mylaptop:8431")  # browsers write names in lower case
    assert named.knows_host("mylaptop.lan:8431")
    assert not everywhere.knows_host("other:8431")


@pytest.mark.parametrize(
    ("host", "only_here"),
    [("127.0.0.1", True), ("localhost", True), ("::1", True), ("0.0.0.0", False), ("me", False)],
)
def test_loopback_is_known(host: str, only_here: bool) -> None:
    assert is_loopback(host) == only_here


@pytest.mark.parametrize("path", ["/", "/compare", "/static/style.css", "/nowhere", "/jobs/none"])
def test_every_answer_has_a_strict_policy(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-resource-policy"] == "same-origin"


def test_a_refused_request_has_the_policy_too(client: TestClient) -> None:
    answer = client.get("/", headers={"host": "evil.example"})
    assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_too_many_requests_are_refused_until_time_has_passed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    monkeypatch.setattr(safety, "BURST", 5.0)
    nothing = Starlette()
    client = TestClient(Safety(nothing, Rules(host="127.0.0.1"), lambda: now[0]), base_url=HOME)
    answers = [client.get("/nowhere").status_code for _ in range(int(safety.BURST) + 1)]
    assert answers[-2:] == [404, 429]
    now[0] = 1.0
    assert client.get("/nowhere").status_code == 404


def bomb(width: int, height: int) -> bytes:
    """A PNG that says it has so many pixels, in a few bytes."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)

    head = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0" * width))
    )


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"", "not a picture"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "not a picture"),
        (b"%PDF-1.7", "not a picture"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "not a picture"),
        (bomb(6400, 6400), "more than 40 million pixels"),
        (bomb(60_000, 60_000), "more than 40 million pixels"),
        (bomb(1, 60_000), "more than 20 times as long"),
    ],
)
def test_what_is_no_picture_or_too_large_is_refused_before_it_is_decoded(
    client: TestClient, data: bytes, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", lambda self: pytest.fail("decoded"))
    answer = client.post("/pictures", content=data)
    assert answer.status_code == 400
    assert line in answer.json()["error"]


def test_a_broken_picture_says_so_when_a_model_looks_at_it(client: TestClient) -> None:
    data = picture_bytes("JPEG", (400, 300))
    number = client.post("/pictures", content=data[: len(data) // 2]).json()["id"]
    answer = client.post("/look", json={"picture": number, "model": MODEL})
    assert answer.status_code == 400
    assert "broken" in answer.json()["error"]


def test_a_model_that_leaves_pictures_at_their_size_gets_no_large_ones(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pinprick.web.workbench._ELEMENTS", 28 * 28 - 1)
    number = workbench.add_picture(picture_bytes(), "a")
    with pytest.raises(BadInput, match="28 x 28 pixels; drop a smaller one"):
        workbench.queue.ask(lambda: workbench.prepare(number, MODEL)).result()


def test_an_upload_that_is_too_long_is_refused(client: TestClient) -> None:
    answer = client.post("/pictures", content=bytes(PICTURE_BYTES + 1))
    assert "20 MB" in answer.json()["error"]

    chunks = (bytes(1000) for _ in range(JSON_BYTES // 1000 + 1))  # of unknown length
    assert "0.8 MB" in client.post("/jobs", content=chunks).json()["error"]


@pytest.mark.parametrize(
    "model", ["file:/etc/passwd", "os:getcwd", "torchvision:resnet18", "", "../secret", "hf:a/b"]
)
def test_only_listed_models_are_loaded(client: TestClient, picture: str, model: str) -> None:
    for path in ("/look", "/jobs"):
        answer = client.post(path, json={"picture": picture, "model": model, "attack": "greedy"})
        assert answer.status_code == 400
        assert "no listed model is called" in answer.json()["error"]
    assert client.get(f"/classes?model={model}").status_code == 400
    assert client.get(f"/prepared.png?picture={picture}&model={model}").status_code == 400


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"attack": "plans/ablation.py:Variant"}, "no attack is called"),
        ({"attack": "os:system"}, "no attack is called"),
        ({"attack": "egs_tssa"}, "no attack is called"),
        ({"attack": "pgd", "unit": "pixels"}, "no choice of unit"),
        ({"attack": "pinprick", "effort": "endless"}, "no effort of pinprick"),
        ({"attack": 7}, "attack must be a text"),
        ({"attack": "x" * 300}, "attack must be a text"),
        ({"attack": "greedy", "max_passes": 0}, "max_passes must be a whole number"),
        ({"attack": "greedy", "max_passes": True}, "max_passes must be a whole number"),
        ({"attack": "greedy", "picture": "other"}, "no such picture"),
    ],
)
def test_bad_fields_are_refused_in_one_line(
    client: TestClient, picture: str, fields: dict[str, object], line: str
) -> None:
    answer = client.post("/jobs", json={"picture": picture, "model": MODEL, **fields})
    assert answer.status_code == 400
    assert line in answer.json()["error"]
    assert "\n" not in answer.json()["error"]


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff", b"[" * 100_000])
def test_bad_json_is_refused(client: TestClient, body: bytes) -> None:
    assert client.post("/jobs", content=body).status_code == 400


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/..%2fapp.py",
        "/static//etc/passwd",
        "/jobs/../../etc/passwd",
    ],
)
def test_no_path_leaves_the_folder_of_the_pages(client: TestClient, path: str) -> None:
    assert client.get(path).status_code in (400, 404)


def test_a_hostile_name_becomes_a_plain_one(client: TestClient) -> None:
    name = "../../<b>x</b>\r\nset-cookie: a.png"
    answer = client.post("/pictures", params={"name": name}, content=picture_bytes())
    assert re.fullmatch(r"[\w .-]+", answer.json()["name"])


def test_the_pages_ask_for_nothing_elsewhere() -> None:
    folder = Path(safety.__file__).parent
    for file in [*folder.glob("templates/*"), *folder.glob("static/*")]:
        found = re.findall(r"(?:https?:)?//[a-z][\w.-]+\.\w+", file.read_text())
        assert set(found) <= {"http://www.w3.org"}, file.name
