"""The class archive: when it is used, when it is not, and that it is made whole."""

from __future__ import annotations

import os
import shlex
import subprocess
import time
from pathlib import Path

import pytest

from penstock.errors import RunError
from penstock.spark import archive
from penstock.spark.archive import (
    BASE,
    SIZES,
    TOP,
    UNUSED_AFTER_S,
    archive_folder,
    archive_options,
    create_archive,
    spark_home,
)
from penstock.spark.java import Java, cache_directory, find_java

core = pytest.mark.core


@pytest.fixture
def java(tmp_path: Path) -> Java:
    (tmp_path / "jdk").mkdir()
    (tmp_path / "jdk" / "release").write_text('JAVA_VERSION="21.0.1"\n')
    return Java(tmp_path / "jdk", 21, "JAVA_HOME")


@pytest.fixture
def spark(tmp_path: Path) -> Path:
    (tmp_path / "spark" / "jars").mkdir(parents=True)
    (tmp_path / "spark" / "jars" / "core.jar").write_text("a jar")
    return tmp_path / "spark"


def put_archive(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for name in (BASE, TOP):
        (folder / name).write_text("not really")
    (folder / SIZES).write_text(f"{BASE} 10\n{TOP} 10\n")
    return folder


@core
def test_without_an_archive_there_are_no_options(java: Java, spark: Path, tmp_path: Path) -> None:
    assert archive_options(java, spark, tmp_path / "cache") == ()


@core
def test_an_archive_is_named_in_the_options(java: Java, spark: Path, tmp_path: Path) -> None:
    folder = put_archive(archive_folder(java, spark, tmp_path))
    assert archive_options(java, spark, tmp_path) == (
        f"-XX:SharedArchiveFile={folder / TOP}",
        "-Xshare:auto",
        "-Xlog:cds*=off",
    )


@core
@pytest.mark.parametrize("part", [BASE, TOP])
def test_an_archive_that_was_cut_short_is_not_used(
    java: Java, spark: Path, tmp_path: Path, part: str
) -> None:
    folder = put_archive(archive_folder(java, spark, tmp_path))
    (folder / part).write_text("not")
    assert archive_options(java, spark, tmp_path) == ()


@core
def test_another_java_or_another_jar_is_another_archive(
    java: Java, spark: Path, tmp_path: Path
) -> None:
    folders = {archive_folder(java, spark, tmp_path)}
    (java.home / "release").write_text('JAVA_VERSION="21.0.2"\n')
    folders.add(archive_folder(java, spark, tmp_path))
    (spark / "jars" / "core.jar").write_text("a newer jar")
    folders.add(archive_folder(java, spark, tmp_path))
    (spark / "jars" / "more.jar").write_text("one more jar")
    folders.add(archive_folder(java, spark, tmp_path))
    assert len(folders) == 4


@core
def test_a_ready_archive_is_not_made_again(java: Java, spark: Path, tmp_path: Path) -> None:
    folder = put_archive(archive_folder(java, spark, tmp_path))
    assert create_archive(java, spark, tmp_path) == folder


@core
@pytest.mark.parametrize(
    ("script", "timeout_s", "message"),
    [
        ("echo 'Error: no such option' >&2; exit 1", 60, "no class archive: Error: no such option"),
        ("exit 0", 60, "no class archive: it said nothing"),
        ("exec sleep 60", 0.2, "no class archive in 0.2 s"),
    ],
)
def test_a_java_that_makes_none_leaves_nothing_behind(
    java: Java, spark: Path, tmp_path: Path, script: str, timeout_s: float, message: str
) -> None:
    (java.home / "bin").mkdir()
    java.command.write_text(f"#!/bin/sh\n{script}\n")
    java.command.chmod(0o755)
    with pytest.raises(RunError, match=message):
        create_archive(java, spark, tmp_path / "cache", timeout_s=timeout_s)
    assert archive_options(java, spark, tmp_path / "cache") == ()
    assert not [file for file in (tmp_path / "cache").rglob("*") if file.is_file()]


@core
def test_archives_unused_for_a_month_are_forgotten(
    java: Java, spark: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long_ago = time.time() - UNUSED_AFTER_S - 60
    for name in ("classes-17-old", "classes-17-new", "java-25-other"):
        put_archive(tmp_path / name)
        os.utime(tmp_path / name, (long_ago, long_ago))
    os.utime(tmp_path / "classes-17-new")
    monkeypatch.setattr(archive, "_make_base", lambda *_: None)
    monkeypatch.setattr(archive, "_make_top", lambda *_: None)
    monkeypatch.setattr(archive, "_declare_whole", lambda *_: None)
    create_archive(java, spark, tmp_path)
    assert {folder.name for folder in tmp_path.glob("*-*")} == {
        "classes-17-new",
        "java-25-other",
        archive_folder(java, spark, tmp_path).name,
    }


@core
def test_using_an_archive_keeps_it(java: Java, spark: Path, tmp_path: Path) -> None:
    folder = put_archive(archive_folder(java, spark, tmp_path))
    os.utime(folder, (0, 0))
    archive_options(java, spark, tmp_path)
    assert time.time() - folder.stat().st_mtime < 60


@core
def test_the_command_says_in_one_line_why_there_is_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_luck(*_: object) -> Path:
        raise RunError("Java made no class archive: no luck")

    monkeypatch.setattr(archive, "create_archive", no_luck)
    assert archive.main() == 1
    assert capsys.readouterr().err == (
        "No class archive, so Spark starts a little slower: Java made no class archive: no luck\n"
    )


@core
def test_java_starts_silently_with_an_archive_it_cannot_use(tmp_path: Path) -> None:
    java = find_java()
    put_archive(archive_folder(java, spark_home(), tmp_path))
    options = archive_options(java, spark_home(), tmp_path)
    told = subprocess.run([java.command, *options, "-version"], capture_output=True, text=True)
    assert (told.returncode, told.stdout) == (0, "")


def test_spark_takes_its_classes_from_the_archive(tmp_path: Path) -> None:
    """Makes this machine's archive if the set-up has not, which takes most of a minute."""
    java, home, cache = find_java(), spark_home(), cache_directory()
    create_archive(java, home, cache)
    log = tmp_path / "classes.log"
    options = [*archive_options(java, home, cache), f"-Xlog:class+load:file={log}"]
    subprocess.run(
        [home / "bin" / "spark-submit", "--driver-java-options", shlex.join(options), "--version"],
        env={**os.environ, "JAVA_HOME": str(java.home), "SPARK_HOME": str(home)},
        capture_output=True,
        check=True,
    )
    from_archive = [line for line in log.read_text().splitlines() if "file (top)" in line]
    assert any("org.apache.spark.deploy.SparkSubmit" in line for line in from_archive)
