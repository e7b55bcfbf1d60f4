"""Local files without a process for each of them.

Hadoop's local file system sets the permissions of every file it makes, and knows no other way than
to start ``chmod``: two processes for a batch without state, ten for that of a join. The one made
here asks the system itself. Spark has the compiler for it at hand, for the code of its queries.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from penstock.spark.jvm.gateway import Jvm

_NAME = "penstock.LocalFiles"
_SOURCE = """
package penstock;

public class LocalFiles extends org.apache.hadoop.fs.RawLocalFileSystem {
  public void setPermission(
      org.apache.hadoop.fs.Path path, org.apache.hadoop.fs.permission.FsPermission permission)
      throws java.io.IOException {
    java.nio.file.Files.setAttribute(
        pathToFile(path).toPath(),
        "unix:mode",
        Integer.valueOf(permission.toShort()),
        new java.nio.file.LinkOption[0]);
  }
}
"""


def use_local_files(session: SparkSession) -> None:
    """From now on this file system serves every local path in the session's own process.

    Hadoop keeps one for all who ask, whatever their settings say; executors of a cluster, which
    have not heard of this one, go by the settings.
    """
    jvm = Jvm(session)
    java = jvm.java
    compiler = java("org.codehaus.janino.SimpleCompiler")()
    compiler.setParentClassLoader(java("java.lang.Thread").currentThread().getContextClassLoader())
    compiler.cook(_SOURCE)
    settings = java("org.apache.hadoop.conf.Configuration")(jvm.hadoop)
    settings.setClassLoader(compiler.getClassLoader())
    settings.set("fs.file.impl", _NAME)
    systems, local = (
        java("org.apache.hadoop.fs.FileSystem"),
        java("java.net.URI").create("file:///"),
    )
    systems.get(local, settings).close()
    systems.get(local, settings)
