"""Settings for pip are passed on to uv. Variable names: reference pages of uv and pip."""

from evalapp.ops.install import main, parse_pip_config, uv_environment


def test_pip_variables_are_passed_on():
    environ = {
        "PIP_FIND_LINKS": "/wheels /more wheels".replace("more wheels", "more"),
        "PIP_INDEX_URL": "https://index.example/simple",
        "PIP_EXTRA_INDEX_URL": "https://a.example/simple https://b.example/simple",
        "PIP_CERT": "/etc/ca.pem",
        "PIP_DEFAULT_TIMEOUT": "180",
        "HOME": "/home/ada",
    }
    assert uv_environment(environ, {}) == environ | {
        "UV_FIND_LINKS": "/wheels,/more",
        "UV_DEFAULT_INDEX": "https://index.example/simple",
        "UV_INDEX": "https://a.example/simple https://b.example/simple",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "SSL_CERT_FILE": "/etc/ca.pem",
        "UV_HTTP_TIMEOUT": "180",
    }


def test_pip_files_are_passed_on_and_variables_win():
    listing = (
        "global.cert='/etc/ca.pem'\nglobal.index-url='https://one.example'\ninstall.index-url='https://two.example'\n"
    )
    configured = parse_pip_config(listing)
    assert configured == {"cert": "/etc/ca.pem", "index-url": "https://two.example"}
    assert uv_environment({}, configured)["UV_DEFAULT_INDEX"] == "https://two.example"
    result = uv_environment({"PIP_INDEX_URL": "https://three.example"}, configured)
    assert result["UV_DEFAULT_INDEX"] == "https://three.example"


def test_uv_settings_stay():
    environ = {"UV_FIND_LINKS": "/mine", "PIP_FIND_LINKS": "/theirs"}
    assert uv_environment(environ, {}) == environ


def test_system_certificates_are_trusted_if_present():
    assert uv_environment({}, {}, system_certificates=True) == {"UV_SYSTEM_CERTS": "1"}
    named = {"SSL_CERT_FILE": "/etc/ca.pem"}
    assert uv_environment(named, {}, system_certificates=True) == named


def test_several_link_folders_of_a_file_are_on_separate_lines():
    configured = parse_pip_config("global.find-links='\\n/a\\n/b'\n")
    assert uv_environment({}, configured)["UV_FIND_LINKS"] == "/a,/b"


def test_usage_is_shown_without_files(capsys):
    assert main([]) == 2
    assert "usage" in capsys.readouterr().err
