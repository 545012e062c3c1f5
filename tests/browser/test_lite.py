"""`python3 course browser`: the folder's notebooks run in a browser, and an update keeps a student's work."""

import base64
import contextlib
import json
import shutil
import time
import zipfile

import pytest

from lectures.site.browser import licences, lite
from minigrad_course.authoring.build import EXERCISE, read, source_of
from tests.browser.lite import EXECUTE, OUTPUTS, READY, RUN_ALL, SAVE, WORK, served
from tests.viz.browser import needs_browser, opened
from tests.viz.firefox import Firefox, needs_firefox

FIRST = "00_start.ipynb"


@pytest.fixture(scope="module")
def folder(pyodide_folder, tmp_path_factory):
    """The folder, made once."""
    try:
        place = tmp_path_factory.mktemp("browser") / "made"
        lite.build(place, pyodide_folder)
        return place
    except lite.LiteError as error:
        pytest.skip(f"there is no JupyterLite: {str(error).splitlines()[0]}")


@needs_browser
def test_a_unit_runs_in_the_browser(folder):
    """Every cell, a view that steps, and the solved exercise; nothing is asked from another server."""
    with served(folder) as server, opened(
        url=f"{server.address}/{lite.address(FIRST)}", strict=False  # JupyterLite has errors
    ) as page:
        page.get_by_text("Python is starting").wait_for()
        page.wait_for_function(READY)
        page.get_by_text("Python is starting").wait_for(state="detached")
        assert page.evaluate(RUN_ALL)
        said = page.evaluate(OUTPUTS)
        assert said[0].endswith("points\n\n6.0") and said[-1] == "∂x is\n10.0\n", said
        assert "not answered yet" in said[1]
        view = page.locator(".mg-view:has(button)").first
        view.scroll_into_view_if_needed()
        before = view.inner_html()
        view.get_by_role("button", name="next").first.click()
        assert view.inner_html() != before
        solved = read(source_of("00_start", EXERCISE)).cells
        cells = [json.dumps(cell.source) for cell in solved if cell.cell_type == "code"]
        said = [page.evaluate(f"{EXECUTE}({cell})") for cell in cells]
        assert not any("✗" in each for each in said) and sum("✓" in each for each in said) >= 3, said
        page.evaluate(SAVE)
        kept = page.evaluate(f"{WORK}.then(({{ packed }}) => packed())")
        assert FIRST in kept
        progress = page.evaluate(f"(file) => {WORK}.then(({{ textOf }}) => textOf(file))", kept["course-progress.json"])
        assert json.loads(progress)["tasks"]["gradient_of_a"]["points"]
    assert {path for path in server.asked if path.endswith(".whl")} == {
        f"/static/pyodide/{name}" for name in wheels(folder) if not name.startswith("pyodide_unix")
    }


@needs_firefox
def test_a_unit_runs_in_firefox_from_a_server_with_wrong_types(folder, tmp_path):
    with served(folder, wasm="text/plain") as server, contextlib.closing(Firefox(tmp_path)) as firefox:
        firefox.ask("browsingContext.navigate", **firefox.page, url=f"{server.address}/{lite.address(FIRST)}")
        for _ in range(300):
            if firefox.run(READY):
                break
            time.sleep(0.2)
        ran = firefox.ask("script.evaluate", expression=RUN_ALL, target=firefox.page, awaitPromise=True)
        said = firefox.run(OUTPUTS)
        assert ran["result"]["value"] is True and said[-1] == "∂x is\n10.0\n", said


def wheels(folder):
    """The names of the wheels that the folder's list of packages names."""
    packages = json.loads((folder / "static/pyodide/pyodide-lock.json").read_text(encoding="utf-8"))["packages"]
    return [each["file_name"] for each in packages.values() if each["file_name"].endswith(".whl")]


def changed(text, word):
    """A notebook with another text in its first cell."""
    notebook = json.loads(text)
    notebook["cells"][0]["source"] = word
    return notebook


@needs_browser
def test_an_update_keeps_what_a_student_changed_and_renews_the_rest(folder, tmp_path):
    course = shutil.copytree(folder, tmp_path / "course")
    ran, both, mine = "01_why_frameworks.ipynb", "02_arrays.ipynb", "03_devices.ipynb"
    first = {name: (course / "files" / name).read_text(encoding="utf-8") for name in (ran, both, mine)}
    answered = {name: changed(first[name], "my work") for name in (both, mine)} | {ran: json.loads(first[ran])}
    answered[ran]["cells"][1]["outputs"] = ["something"]
    work = {name: {"name": name, "path": name, "type": "notebook", "format": "json", "content": content,
                   "last_modified": "2026-01-01T00:00:00Z", "created": "2026-01-01T00:00:00Z"}
            for name, content in answered.items()}
    with served(course) as server, opened(url=f"{server.address}/") as page:
        said = upload(page, work)
        assert said == [f"taken in: {name}" for name in work]
        for name in (ran, both):
            (course / "files" / name).write_text(json.dumps(changed(first[name], "new in the course")))
        (course / lite.SEEN).write_text(json.dumps(lite.seen(course)))
        page.goto(f"{server.address}/{lite.address(both)}")  # JupyterLite finds what was written without it
        page.get_by_role("paragraph").get_by_text("my work").wait_for()
        said = page.locator("[role=status] > div").all_inner_texts()
        assert [line for line in said if not line.startswith("Python is starting")] == [
            f"updated: {ran}",
            f"changed by you and by the course: {both} is your version, 02_arrays (new 2).ipynb is the new one",
        ]
        page.goto(f"{server.address}/{lite.address('02_arrays (new 2).ipynb')}")
        page.get_by_role("paragraph").get_by_text("new in the course").wait_for()
        page.goto(f"{server.address}/{lite.address(ran)}")
        page.get_by_role("paragraph").get_by_text("new in the course").wait_for()
        page.goto(f"{server.address}/")
        assert page.locator("[role=status]").count() == 0
        with page.expect_download() as download:
            page.get_by_role("button", name="Download").click()
        kept = json.loads(download.value.path().read_text(encoding="utf-8"))["minigrad work"]
        assert kept[mine]["content"]["cells"][0]["source"] == "my work" and "02_arrays (new 2).ipynb" in kept
        (said,) = upload(page, {both: work[mine]})
        assert said == f"differs from yours: {both}, so it is now 02_arrays (uploaded 2).ipynb"


@needs_browser
def test_the_buttons_work_while_the_page_looks_for_updates(folder):
    with served(folder) as server, opened("") as page:
        page.add_init_script("""
          const [ask, gate] = [fetch, new Promise((open) => { globalThis.answer = open; })];
          globalThis.fetch = (...request) => gate.then(() => ask(...request));
        """)
        page.goto(f"{server.address}/")
        page.get_by_role("button", name="Download").click()
        page.set_input_files("#upload", {"name": "a.json", "mimeType": "application/json", "buffer": b"{}"})
        page.evaluate("answer()")
        page.get_by_text("There is no work in this browser yet.").wait_for()
        page.get_by_text("a.json could not be taken in: this is not a file of work").wait_for()


@needs_browser
def test_a_notebook_can_be_handed_in_from_its_page(folder):
    address = lite.address(FIRST)
    with served(folder) as server, opened(url=f"{server.address}/{address}", strict=False) as page:
        page.locator(".jp-Notebook .jp-Cell").first.wait_for()
        page.locator(".lm-MenuBar-item", has_text="File").click()
        with page.expect_download() as download:
            page.locator(".lm-Menu-item", has_text="Download").click()  # the only one
        assert download.value.suggested_filename == FIRST


@needs_browser
def test_jupyterlab_has_large_buttons_and_code_under_fingers(folder):
    phone = {"size": (390, 844), "fingers": True}
    address = lite.address(FIRST)
    with served(folder) as server, opened(url=f"{server.address}/{address}", strict=False, **phone) as page:
        button = page.locator(".jp-NotebookPanel-toolbar [title^=Run]").first
        button.wait_for()
        box = button.bounding_box()
        assert min(box["width"], box["height"]) >= 40
        assert page.locator(".cm-content").first.evaluate("code => getComputedStyle(code).fontSize") == "16px"


@needs_browser
def test_what_a_page_says_covers_nothing_else_that_it_says(folder):
    with served(folder) as server, opened(url=f"{server.address}/") as page:
        page.evaluate(f"{WORK}.then(({{ say }}) => {{ say(['Python is starting']); say(['updated: a']) }})")
        first, second = (box.bounding_box() for box in page.locator("[role=status]").all())
        assert first["y"] + first["height"] <= second["y"]
        assert second["y"] + second["height"] <= page.viewport_size["height"]
        page.get_by_role("button", name="Close").last.click()
        assert page.locator("[role=status]").all_inner_texts() == ["Python is starting\nClose"]


@needs_browser
def test_progress_of_two_browsers_is_joined(folder):
    here = {"student": "Ada", "tasks": {"rise": {"tries": 1}}}
    there = {"student": "", "tasks": {"rise": {"tries": 9}, "order": {"tries": 2}}}
    with served(folder) as server, opened(url=f"{server.address}/") as page:
        for progress in (here, there):
            content = base64.b64encode(json.dumps(progress).encode()).decode()
            said = upload(page, {"course-progress.json": {"format": "base64", "content": content}})
        assert said == ["joined: course-progress.json"]
        kept = page.evaluate(f"{WORK}.then(({{ packed }}) => packed())")["course-progress.json"]
        assert json.loads(kept["content"]) == {"student": "Ada", "tasks": {"order": {"tries": 2}, "rise": {"tries": 1}}}
        page.set_input_files("#upload", {"name": "a.json", "mimeType": "application/json", "buffer": b"{}"})
        page.get_by_text("a.json could not be taken in: this is not a file of work").wait_for()


def upload(page, work):
    """Upload a file of work on the first page, and return what the page says."""
    before = page.locator("[role=status]").count()
    content = json.dumps({"minigrad work": work}).encode()
    page.set_input_files("#upload", {"name": "work.json", "mimeType": "application/json", "buffer": content})
    page.locator("[role=status]").nth(before).wait_for()
    lines = page.locator("[role=status]").nth(before).locator("div").all_inner_texts()
    assert lines.pop() == "Done."
    return lines


@pytest.mark.slow
def test_the_same_checkout_makes_the_same_wheel_with_all_files_of_the_package(tmp_path):
    (tmp_path / "again").mkdir()
    first, second = lite.package(tmp_path), lite.package(tmp_path / "again")
    assert first.read_bytes() == second.read_bytes()
    with zipfile.ZipFile(first) as files:
        names = set(files.namelist())
    assert {"minigrad/__init__.py", "minigrad/data/sets/digits.npz", "minigrad_course/unit.py"} <= names
    assert not any("_notebook" in name or "test_" in name or "authoring" in name for name in names)
    assert not any("__pycache__" in name for name in names)


def test_a_folder_with_other_files_is_not_replaced(tmp_path, capsys):
    (tmp_path / "mine.txt").write_text("precious")
    assert lite.main([str(tmp_path)]) == 1
    assert "has other files\nHint: name a new folder" in capsys.readouterr().err and (tmp_path / "mine.txt").exists()


@pytest.mark.slow
def test_without_the_package_index_the_message_says_what_failed(tmp_path, monkeypatch, capsys, pyodide_folder):
    monkeypatch.setattr(lite, "STORED", tmp_path)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    assert lite.main(["--pyodide", str(pyodide_folder), str(tmp_path / "made")]) == 1
    said = capsys.readouterr().err
    assert said.startswith("pip could not get the packages of requirements.txt:") and "Hint: " in said
    assert lite.main(["--pyodide", str(tmp_path)]) == 1 and "does not hold Pyodide" in capsys.readouterr().err
    assert lite.main(["--pyodide"]) == 1 and capsys.readouterr().err.startswith("--pyodide needs a folder")


@pytest.mark.slow
def test_the_page_of_licences_lists_what_the_folder_contains(folder):
    packages = {path.name.split("-")[0]: path for path in lite.gathered().glob("*.whl")}
    found = licences.parts(folder, [packages[name] for name in lite.SHOWN])
    assert licences.table(found) in (lite.ROOT / "lectures/licences.md").read_text(encoding="utf-8")
    text = (folder / licences.FILE).read_text(encoding="utf-8")
    assert all(each.text.strip() in text and f"\n{each.name} {each.version}\n" in text for each in found)
    assert {"Mozilla Public License Version 2.0\n", "PYTHON SOFTWARE FOUNDATION LICENSE VERSION 2\n"} <= {
        f"{line}\n" for line in text.splitlines()
    }
