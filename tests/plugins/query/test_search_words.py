"""The truth table of the search: what people type, and what it finds."""

# ruff: noqa: RUF001 - what people type

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from heald import Host
from heald_query import session_query
from heald_session import APPEND, SessionId, session_store

OpenHost = Callable[..., AbstractAsyncContextManager[Host]]

TEXTS = {
    "prose": "The weaver lifts the healds, and the shuttle passes.",
    "turned": "A shuttle passes before the weaver lifts anything.",
    "chinese": "请使用gen-itgc工具检查线程，然后搜索全文",
    "punctuated": "线。程",
    "japanese": "設定ファイルを読み込みます",
    "korean": "파일을 읽었습니다",
    "camel": "call getUserName on HTTPServer, then hash with sha256",
    "snake": "call get_user_name or MAX_RETRY_COUNT",
    "kebab": "run gen-itgc once",
    "path": "see src/heald/query/index.py:42 and ~/notes/TODO.md",
    "email": "write to ada@example.org",
    "emoji": "shipped🎉 all green ✅👍🏽",
    "accents": "Le résumé de l'élève, Größe und Straße",
    "wide": "ＡＢＣ in full width",
    "operators": 'NOT a OR b AND NEAR(c) "quoted" words* ^caret col:value (x) + y - z',
    "cpp": "std::vector<int> in C++ and C#",
    "hebrew": "הAPI של המערכת",
    "apostrophe": "don't panic",
    "boxes": "├── loom\n└── reed",
    "number": "it took 3.14 s on 2026-08-01",
}

TABLE = [
    # one word, whatever its case
    ("weaver", {"prose", "turned"}),
    ("WEAVER", {"prose", "turned"}),
    ("weave", set()),
    # two words, in any order
    ("shuttle weaver", {"prose", "turned"}),
    ("weaver shuttle", {"prose", "turned"}),
    ("weaver panic", set()),
    # phrases
    ('"weaver lifts"', {"prose", "turned"}),
    ('"lifts weaver"', set()),
    ('"shuttle passes" healds', {"prose"}),
    ('"healds and the shuttle"', {"prose"}),
    ("“weaver lifts the”", {"prose"}),
    # Chinese: one, two, three characters and more
    ("线", {"chinese", "punctuated"}),
    ("线程", {"chinese", "punctuated"}),
    ("程线", set()),
    ("检查线", {"chinese"}),
    ("搜索全文", {"chinese"}),
    ("全文 线程", {"chinese"}),
    ("线全", set()),
    # other scripts without spaces, or with glued particles
    ("ファイル", {"japanese"}),
    ("設定", {"japanese"}),
    ("파일", {"korean"}),
    # an identifier glued to Chinese
    ("gen-itgc", {"chinese", "kebab"}),
    ("itgc", {"chinese", "kebab"}),
    ("使用gen-itgc", {"chinese"}),
    ("gen-itgc工具", {"chinese"}),
    ("工具 gen", {"chinese"}),
    # identifiers, whole and in parts
    ("getUserName", {"camel", "snake"}),
    ("getusername", {"camel"}),
    ("get_user_name", {"camel", "snake"}),
    ("user", {"camel", "snake"}),
    ("UserName", {"camel", "snake"}),
    ("name get", {"camel", "snake"}),
    ("HTTPServer", {"camel"}),
    ("server", {"camel"}),
    ("http", {"camel"}),
    ("sha256", {"camel"}),
    ("sha", {"camel"}),
    ("256", {"camel"}),
    ("MAX_RETRY_COUNT", {"snake"}),
    ("retry", {"snake"}),
    ("retry_count", {"snake"}),
    ("name hash", {"camel"}),
    ('"name http"', set()),
    # paths
    ("src/heald/query/index.py", {"path"}),
    ("query/index.py", {"path"}),
    ("index.py", {"path"}),
    ("index.py:42", {"path"}),
    ("index", {"path"}),
    ("~/notes/TODO.md", {"path"}),
    ("heald/index", set()),
    ("ada@example.org", {"email"}),
    # pictures
    ("🎉", {"emoji"}),
    ("shipped", {"emoji"}),
    ("✅", {"emoji"}),
    ("👍", {"emoji"}),
    ("👍🏽", {"emoji"}),
    ("🐛", set()),
    # letters that are taken for one
    ("resume", {"accents"}),
    ("RÉSUMÉ", {"accents"}),
    ("re\u0301sume\u0301", {"accents"}),
    ("größe", {"accents"}),
    ("ABC", {"wide"}),
    ("ａｂｃ", {"wide"}),
    # quotes and operators that people type
    ("NOT", {"operators"}),
    ("weaver NOT shuttle", set()),
    ("weaver OR panic", set()),
    ("weaver AND shuttle", {"prose"}),
    ("words*", {"operators"}),
    ("word*", set()),
    ("^caret", {"operators"}),
    ("col:value", {"operators"}),
    ("words:weaver", set()),
    ("NEAR(c)", {"operators"}),
    ("-z", {"operators"}),
    ("(x) + y", {"operators"}),
    ('"quoted', {"operators"}),
    ('quoted"', {"operators"}),
    ('"weaver lifts" "', {"prose", "turned"}),
    ("C++", {"cpp", "operators"}),
    ("std::vector<int>", {"cpp"}),
    ("don't", {"apostrophe"}),
    ("don’t", {"apostrophe"}),
    ("API", {"hebrew"}),
    ("המערכת", {"hebrew"}),
    ("3.14", {"number"}),
    ("2026-08-01", {"number"}),
    ("loom", {"boxes"}),
    # no word at all
    ("", set()),
    ("   ", set()),
    ('"', set()),
    ('""', set()),
    ("* ^ : ( ) - +", set()),
    ("├──", set()),
    ("!!! ...", set()),
]


async def test_the_truth_table_holds(open_rows: OpenHost) -> None:
    wrong = {}
    async with open_rows() as host:
        store, query = host.scope.require(session_store), host.scope.require(session_query)
        for name, text in TEXTS.items():
            session = await store.create(cwd="/loom", id=SessionId(name))
            session.append("user/message", {"id": "m", "text": text}, surface=APPEND)
            await session.flush()
        for typed, expected in TABLE:
            page = await query.search(typed, limit=50)
            found = {hit.session for hit in page.hits}
            if found != expected or page.total != len(expected):
                wrong[typed] = (found, page.total)
    assert wrong == {}
