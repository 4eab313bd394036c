# SPDX-License-Identifier: MIT
"""Reads a result store as its users do, with h5py and pandas, which know nothing of nanojoule."""
import os
import subprocess
import sys
import tempfile

import h5py
import numpy
import pandas


def check_store(path):
    with h5py.File(path, "r") as file:
        assert sorted(file) == ["frontiers", "points", "scenario"], sorted(file)
        assert file.attrs["schema"] == 1
        assert file.attrs["format"].decode() == "nanojoule result store"
        points = file["points"]
        assert points.dtype.names == ("point", "name", "time_s")
        assert points.compression == "gzip" and points.fletcher32 and points.shuffle and points.chunks
        assert file["frontiers"].shape == (0,)
        for dataset in file.values():
            names = dataset.dtype.names
            assert len(dataset.attrs["unit"]) == len(dataset.attrs["description"]) == len(names)
            for i, name in enumerate(names):
                assert dataset.attrs[f"FIELD_{i}_NAME"].decode() == name
                assert dataset.attrs[f"FIELD_{i}_UNIT"] == dataset.attrs["unit"][i]
                assert dataset.attrs[f"FIELD_{i}_DESCRIPTION"] == dataset.attrs["description"][i]
                assert len(dataset.attrs["description"][i]) > 0
        assert [unit.decode() for unit in points.attrs["unit"]] == ["1", "", "s"]
        assert points.attrs["description"][1].decode() == "a name, Größe µ"
        assert points.id.get_type().get_member_type(1).get_cset() == h5py.h5t.CSET_UTF8

        scenario = file["scenario"][0]
        assert scenario["text"].decode() == "[a]\nk = 1;2\n"
        assert scenario["hash"].decode() == "0123"
        assert scenario["version"].decode() == "0.1"

        frame = pandas.DataFrame(points[:])
        frame["name"] = frame["name"].str.decode("utf-8")

    assert len(frame) == 20001
    assert frame.loc[6, "name"] == "größer µs" and frame.loc[3, "name"] == "x" and frame.loc[1, "name"] == ""
    assert frame.loc[0:6, "time_s"].isna().tolist() == [True, False, False, False, False, True, False]
    assert frame.loc[12344, "time_s"] == 1 / 12345
    assert (frame.loc[0:19999, "point"] == numpy.arange(20000)).all()
    assert frame.loc[20000, "point"] == numpy.iinfo(numpy.int64).min


with tempfile.TemporaryDirectory() as folder:
    store = os.path.join(folder, "s.h5")
    subprocess.run([sys.argv[1], "--write", store], check=True)
    check_store(store)
