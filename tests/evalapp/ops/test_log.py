import io

from evalapp.ops.log import MergedLog, wants_colour


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_lines_are_grouped_by_name_and_parts_are_joined():
    out = io.StringIO()
    log = MergedLog(out, ["web", "redis"], colour=False)
    log.feed("web", b"hel")
    log.feed("redis", b"ready\n")
    log.feed("web", b"lo\nrest")
    log.flush("web")
    log.flush("web")
    assert out.getvalue() == "redis | ready\nweb   | hello\nweb   | rest\n"


def test_process_escapes_do_not_reach_the_terminal():
    out = io.StringIO()
    MergedLog(out, ["web"], colour=False).feed("web", b"\x1b[31mred\x1b[0m \x07bell\r\n\n\xff\n")
    assert out.getvalue() == "web | red bell\nweb | \ufffd\n"


def test_colours_only_on_a_terminal():
    assert wants_colour(Terminal(), {})
    assert not wants_colour(Terminal(), {"NO_COLOR": "1"})
    assert not wants_colour(Terminal(), {"TERM": "dumb"})
    assert not wants_colour(io.StringIO(), {})
    out = io.StringIO()
    MergedLog(out, ["web"], colour=True).line("web", "x")
    assert out.getvalue() == "\x1b[36mweb |\x1b[0m x\n"


def test_endless_line_is_cut_and_a_closed_terminal_is_survived():
    out = io.StringIO()
    log = MergedLog(out, ["web"], colour=False)
    log.feed("web", b"x" * 9000)
    assert len(out.getvalue()) == 9000 + len("web | \n")
    out.close()
    log.line("web", "to nobody")
