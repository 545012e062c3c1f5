"""What `work.js` says when the browser has no room left, on a page that stores as JupyterLite does."""

import json

from lectures.site.build_site import STATIC
from tests.browser.lite import served
from tests.viz.browser import needs_browser, opened

# A store that is full ends a transaction with this error; `full` makes one that ends so.
SAVE = """async (full) => {
  const opening = indexedDB.open("work");
  opening.onupgradeneeded = () => opening.result.createObjectStore("files");
  const base = await new Promise((done) => { opening.onsuccess = () => done(opening.result); });
  const transaction = base.transaction("files", "readwrite");
  transaction.objectStore("files").put("work", "a.ipynb");
  if (full) {
    Object.defineProperty(transaction, "error", { value: new DOMException("", "QuotaExceededError") });
    transaction.abort();
  }
  return new Promise((done) => {
    transaction.oncomplete = () => done("saved");
    transaction.onabort = () => done("lost");
  });
}"""


@needs_browser
def test_a_full_browser_says_how_to_keep_the_work(tmp_path):
    (tmp_path / "work.js").write_bytes((STATIC / "work.js").read_bytes())
    (tmp_path / "course.json").write_text(json.dumps({"build": "1", "notebooks": {}, "fresh": []}), encoding="utf-8")
    page = '<!doctype html><meta charset="utf-8"><body><script type="module" src="work.js"></script>'
    (tmp_path / "index.html").write_text(page, encoding="utf-8")
    with served(tmp_path) as server, opened(url=f"{server.address}/index.html") as shown:
        said = shown.locator("[role=status]")
        assert shown.evaluate(SAVE, False) == "saved" and said.count() == 0
        assert [shown.evaluate(SAVE, True), shown.evaluate(SAVE, True)] == ["lost", "lost"]
        assert said.count() == 1 and "File → Download" in said.inner_text()


@needs_browser
def test_the_first_page_opened_from_the_disk_says_that_it_needs_a_server(tmp_path):
    text = (STATIC / "lite.html").read_text(encoding="utf-8").replace("$$", "$")
    (tmp_path / "index.html").write_text(text, encoding="utf-8")
    (tmp_path / "work.js").write_text("export const packed = () => ({});", encoding="utf-8")
    with opened(url=(tmp_path / "index.html").as_uri(), strict=False) as shown:
        assert "python3 -m http.server" in shown.get_by_role("alert").inner_text()
    with served(tmp_path) as server, opened(url=f"{server.address}/index.html") as shown:
        assert not shown.locator("#from-disk").is_visible()
