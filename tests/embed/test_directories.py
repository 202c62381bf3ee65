"""A member runs only on a member's directory, with any path."""

import asyncio
import socket
from pathlib import Path

import pytest

from embed.test_guarantees import Journal, free_address, run, until
from quorate.base.errors import QuorateError
from quorate.base.ids import Address, ReplicaKey, Uuid
from quorate.config.dynamic_voters import DynamicVoter
from quorate.config.node_file import load_config
from quorate.embed import Member, create
from quorate.log_dirs import FormatRequest, formatter
from quorate.log_dirs.meta_properties import IdentityError, load_identity

HERE = "127.0.0.1"


def files(directory):
    return {path: path.is_file() and path.read_bytes() for path in directory.rglob("*")}


def controllers_config(path, address):
    """Of controller 1, with its data in `path`/1."""
    properties = path / "server.properties"
    properties.write_text(
        "process.roles=controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n"
        f"listeners=CONTROLLER://{address}\ncontroller.quorum.bootstrap.servers={address}\n"
        f"log.dirs={path}/1\n"
    )
    return load_config(properties)


@pytest.fixture
def taken():
    """An address that cannot be bound."""
    with socket.create_server((HERE, 0)) as sock:
        yield Address(HERE, sock.getsockname()[1])


def test_a_member_refuses_a_controllers_directory(tmp_path, taken):
    config = controllers_config(tmp_path, taken)
    voter = DynamicVoter(ReplicaKey(1, Uuid(b"of-controller-1!")), taken)
    request = FormatRequest("Auo5pIz_RXynyYRjkH2osA", initial_controllers=(voter,))
    formatter.write(formatter.plan(config, request))
    before = files(tmp_path)
    said = (
        r"1 is a controller's directory: run it with `quorate server-start`; "
        r"a member's is made with quorate\.embed\.create$"
    )
    with pytest.raises(QuorateError, match=said):
        asyncio.run(Member.start(tmp_path / "1", Journal(), str(taken)))
    with pytest.raises(QuorateError, match=r"1 is already the directory of a controller$"):
        create(tmp_path / "1", 1, "c")
    assert files(tmp_path) == before


def test_a_controller_refuses_a_members_directory(tmp_path, taken):
    create(tmp_path / "1", 1, "c", {1: str(taken)})
    config = controllers_config(tmp_path, taken)
    before = files(tmp_path)
    said = r"1 is the directory of a member \(quorate\.embed\), and not a controller's"
    with pytest.raises(IdentityError, match=said):
        load_identity(config)
    request = FormatRequest("Auo5pIz_RXynyYRjkH2osA", ignore_formatted=True)
    with pytest.raises(IdentityError, match=said):
        formatter.plan(config, request)
    assert files(tmp_path) == before


@pytest.mark.parametrize("name", ["a,b", " blanks ", "a\\b", "${env:HOME}", "/", "\udcff"])
def test_a_directory_name_is_used_literally(tmp_path, monkeypatch, name):
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    directory = f"{home}/{name}"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)

    async def scenario():
        address = free_address()
        create(directory, 1, "c", {1: address})
        for count in (1, 2):
            journal = Journal()
            async with await Member.start(directory, journal, address) as member:
                await until(lambda member=member: member.leads)
                assert await member.propose(b"x") == count

    run(scenario)
    assert Path(directory, "meta.properties").exists()
    assert list(elsewhere.iterdir()) == []
    assert list(home.iterdir()) == [Path(directory)] or Path(directory) == home


@pytest.mark.parametrize("key", ["log.dir", "log.dirs", "metadata.log.dir"])
def test_settings_cannot_name_another_directory(tmp_path, key):
    create(tmp_path / "1", 1, "c", {1: "127.0.0.1:9093"})
    with pytest.raises(QuorateError, match="settings: pass the directory as an argument"):
        asyncio.run(
            Member.start(
                tmp_path / "1", Journal(), "127.0.0.1:9093", settings={key: str(tmp_path / "2")}
            )
        )
