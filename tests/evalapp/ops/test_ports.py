import socket

import pytest

from evalapp.ops import ports
from evalapp.ops.errors import OpsError, PortInUse


def test_bound_port_answers_and_cannot_be_bound_twice():
    port = ports.find_free_port()
    assert not ports.answers("127.0.0.1", port)
    with ports.bind("127.0.0.1", port):
        assert ports.answers("127.0.0.1", port)
        with pytest.raises(PortInUse) as caught:
            ports.bind("127.0.0.1", port)
    assert (caught.value.host, caught.value.port) == ("127.0.0.1", port)
    assert f"PORT={port + 1}" in str(caught.value)


def test_port_zero_takes_a_free_one():
    with ports.bind("127.0.0.1", 0) as listener:
        assert isinstance(listener, socket.socket)
        assert listener.getsockname()[1] > 0


def test_address_of_another_machine_is_explained():
    with pytest.raises(OpsError, match="Cannot listen on 192"):
        ports.bind("192.0.2.1", 0)  # TEST-NET-1, RFC 5737: unassigned


def test_waiting_ends_with_an_answer_or_the_time_limit():
    answers = iter([False, False, True])
    assert ports.wait_until(lambda: next(answers), 5, every=0.001)
    assert not ports.wait_until(lambda: False, 0.01, every=0.001)
