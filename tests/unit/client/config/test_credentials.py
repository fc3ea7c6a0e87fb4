"""Credentials: tokens in files, in virtual time, and which way of several is taken."""

# ruff: noqa: ASYNC240 - the files are small, and nothing else is on the loop

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from ostinato.client.config.config import Config, ExecPlugin, Tls
from ostinato.client.config.credentials import (
    ClientCertificate,
    Credential,
    Credentials,
    CredentialsError,
    FixedCredentials,
    TokenFile,
    credentials_for,
)
from ostinato.client.config.error import ConfigError
from ostinato.client.config.exec_plugin import ExecCredentials
from ostinato.client.config.secret import Secret
from ostinato.world import Simulation


async def sent(credentials: Credentials) -> str:
    authorization = (await credentials.current()).authorization
    return authorization.reveal() if authorization else ""


@pytest.fixture
def token(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(" first\n")
    return path


def test_a_token_file_is_read_again_after_fifty_seconds(token: Path) -> None:
    simulation = Simulation(1)

    async def main() -> list[str]:
        credentials = TokenFile(token, simulation)
        seen = [await sent(credentials)]
        token.write_text("second")
        for _ in range(2):
            await simulation.clock.sleep(49.9)
            seen.append(await sent(credentials))
        return seen

    assert simulation.run(main()) == ["Bearer first", "Bearer first", "Bearer second"]


def test_a_missing_file_leaves_the_last_token_in_use(token: Path, caplog: pytest.LogCaptureFixture) -> None:
    simulation = Simulation(1)

    async def main() -> list[str]:
        credentials = TokenFile(token, simulation)
        seen = [await sent(credentials)]
        token.unlink()
        await simulation.clock.sleep(60)
        seen += [await sent(credentials), await sent(credentials)]
        token.write_text("second")
        await simulation.clock.sleep(1)
        return [*seen, await sent(credentials)]

    assert simulation.run(main()) == ["Bearer first", "Bearer first", "Bearer first", "Bearer second"]
    assert caplog.text.count("cannot refresh token, using the last one error=failed to read token file") == 1


def test_a_rejected_token_is_reread_and_retried_only_if_it_changed(token: Path) -> None:
    simulation = Simulation(1)

    async def main() -> list[object]:
        credentials = TokenFile(token, simulation)
        first = await credentials.current()
        unchanged = await credentials.rejected(first)
        token.write_text("second")
        changed = await credentials.rejected(first)
        late = await credentials.rejected(first)  # somebody else's request, sent before the change
        return [unchanged, changed, late, await sent(credentials)]

    assert simulation.run(main()) == [False, True, True, "Bearer second"]


def test_however_many_wait_the_file_is_read_once(token: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    simulation = Simulation(1, latency=lambda _rng: 0.1)
    reads: list[object] = []
    real = Path.open

    def counted(self: Path, *args: object, **options: object) -> object:
        reads.append(self)
        return real(self, *args, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", counted)

    async def main() -> set[str]:
        credentials = TokenFile(token, simulation)
        return set(await asyncio.gather(*[sent(credentials) for _ in range(20)]))

    assert simulation.run(main()) == {"Bearer first"}
    assert reads == [token]


def test_a_configured_token_is_used_until_the_file_can_be_read(token: Path) -> None:
    simulation = Simulation(1)
    token.unlink()

    async def main() -> list[str]:
        credentials = TokenFile(token, simulation, Secret("configured"))
        seen = [await sent(credentials)]
        token.write_text("from the file")
        await simulation.clock.sleep(1)
        return [*seen, await sent(credentials)]

    assert simulation.run(main()) == ["Bearer configured", "Bearer from the file"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b" \n", "read empty token from file"),
        (b"s3cret\nsecond line", "is not a single token"),
        (b"\xffs3cret", "is not text"),
        (None, "failed to read token file .*: No such file or directory"),
    ],
)
def test_an_invalid_token_file_is_an_error_that_quotes_nothing(
    content: bytes | None, problem: str, tmp_path: Path
) -> None:
    simulation = Simulation(1)
    path = tmp_path / "token"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(CredentialsError, match=problem) as caught:
        simulation.run(sent(TokenFile(path, simulation)))
    assert "s3cret" not in str(caught.value)


def test_the_size_of_a_token_file_is_bounded() -> None:
    simulation = Simulation(1)
    zeros = Path("/dev/zero")
    if not os.path.exists(zeros):
        pytest.skip("no /dev/zero here")
    with pytest.raises(CredentialsError, match="is not a single token"):
        simulation.run(sent(TokenFile(zeros, simulation)))


def chosen(config: Config) -> Credentials:
    return credentials_for(config, Simulation(1))


PLUGIN = ExecPlugin(command="nothing")


def test_a_token_a_password_or_a_certificate_beats_a_plugin(tmp_path: Path) -> None:
    server, certificate = "https://h", Tls(certificate_data=b"x", key_data=Secret("x"))
    assert isinstance(chosen(Config(server=server, exec_plugin=PLUGIN)), ExecCredentials)
    assert isinstance(chosen(Config(server=server, exec_plugin=PLUGIN, tls=certificate)), FixedCredentials)
    assert isinstance(chosen(Config(server=server, exec_plugin=PLUGIN, token_file=tmp_path)), TokenFile)
    token = chosen(Config(server=server, exec_plugin=PLUGIN, token=Secret(" t\n")))
    basic = chosen(Config(server=server, exec_plugin=PLUGIN, username="u", password=Secret("pä")))
    nobody = chosen(Config(server=server))
    simulation = Simulation(1)
    assert simulation.run(sent(token)) == "Bearer t"
    assert simulation.run(sent(basic)) == "Basic dTpww6Q="
    assert simulation.run(sent(nobody)) == ""


def test_over_plain_http_nothing_is_shown(tmp_path: Path) -> None:
    simulation = Simulation(1)
    for config in (Config(server="http://h", token=Secret("t")), Config(server="http://h", exec_plugin=PLUGIN)):
        assert simulation.run(sent(chosen(config))) == ""


@pytest.mark.parametrize("token", ["", " ", "s3cret\nX: y", "s3cret\x00"])
def test_a_token_not_allowed_in_a_header_is_rejected(token: str) -> None:
    config = Config(server="https://h", token=Secret(token), token_file=Path("x") if not token else None)
    with pytest.raises(ConfigError, match="token: is empty or contains characters not allowed in a header") as caught:
        chosen(config)
    assert "s3cret" not in str(caught.value)


def test_a_fixed_credential_is_not_worth_another_try() -> None:
    simulation = Simulation(1)
    credential = Credential(Secret("a"))
    credentials = FixedCredentials(credential)
    assert simulation.run(credentials.rejected(credential)) is False


def test_certificates_are_compared_by_value() -> None:
    one = ClientCertificate(b"a", Secret("k"))
    assert one == ClientCertificate(b"a", Secret("k"))
    assert hash(one) == hash(ClientCertificate(b"a", Secret("k")))
    assert one != ClientCertificate(b"a", Secret("other"))
    assert one != "a"
    assert "'k'" not in repr(one)
