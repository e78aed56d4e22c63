"""Arrow C streams, made by hand so that every rule of the specification can be broken."""

import ctypes

import pytest

from arboost.backend import core
from arboost.data.table import ingest


def codes_of(table):
    """Return the bin codes of the only column, with a bin for each value."""
    edges = core.quantiles(table.columns, None, None, 255, 1)
    return core.encode(table.columns, None, edges, 1).to_numpy()[:, 0].tolist()


class ArrowSchema(ctypes.Structure):
    """Struct of the Arrow specification."""


class ArrowArray(ctypes.Structure):
    """Struct of the Arrow specification."""


Release = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
ArrowSchema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(ArrowSchema))),
    ("dictionary", ctypes.c_void_p),
    ("release", Release),
    ("private_data", ctypes.c_void_p),
]
ArrowArray._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(ArrowArray))),
    ("dictionary", ctypes.c_void_p),
    ("release", Release),
    ("private_data", ctypes.c_void_p),
]
Get = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
LastError = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)


class ArrowStream(ctypes.Structure):
    """Struct of the Arrow specification."""

    _fields_ = (
        ("get_schema", Get),
        ("get_next", Get),
        ("get_last_error", LastError),
        ("release", Release),
        ("private_data", ctypes.c_void_p),
    )


class HandMade:
    """A stream of one batch with one float64 column, every part of which can be made invalid."""

    def __init__(self, *, error=0, **changes):
        self.released = []
        self.keep = []
        self.values = (ctypes.c_double * 3)(3.0, 1.0, 2.0)
        self.changes = {"format": b"g", "length": 3, "n_buffers": 2, **changes}
        self.error = error
        self.sent = False

    def _releaser(self, kind, structure):
        """Release functions mark their struct, as the specification requires."""

        def release(pointer):
            self.released.append(kind)
            structure.from_address(pointer).release = Release()

        self.keep.append(Release(release))
        return self.keep[-1]

    def _schema(self, _, out):
        field = ArrowSchema(format=self.changes["format"], name=b"a")
        if "entries" in self.changes:
            entries = ArrowSchema(format=self.changes["entries"]["format"])
            self.keep.append(entries)
            field.dictionary = ctypes.addressof(entries)
        children = (ctypes.POINTER(ArrowSchema) * 1)(ctypes.pointer(field))
        self.keep += [field, children]
        root = ArrowSchema(format=b"+s", n_children=1, children=children)
        root.release = self._releaser("schema", ArrowSchema)
        ctypes.memmove(out, ctypes.byref(root), ctypes.sizeof(root))
        return 0

    def _next(self, _, out):
        if self.error:
            return self.error
        if self.sent:
            ctypes.memset(out, 0, ctypes.sizeof(ArrowArray))
            return 0
        self.sent = True
        values = self.changes.get("values", ctypes.addressof(self.values))
        more = [ctypes.addressof(buffer) for buffer in self.changes.get("buffers", ())]
        pointers = [self.changes.get("validity"), *(more or [values])]
        buffers = (ctypes.c_void_p * len(pointers))(*pointers)
        column = ArrowArray(
            length=self.changes["length"],
            offset=self.changes.get("offset", 0),
            null_count=self.changes.get("null_count", 0),
            n_buffers=self.changes["n_buffers"],
            buffers=buffers,
        )
        if "entries" in self.changes and not self.changes["entries"].get("lost"):
            column.dictionary = ctypes.addressof(self._entries(**self.changes["entries"]))
        children = (ctypes.POINTER(ArrowArray) * 1)(ctypes.pointer(column))
        n_children = self.changes.get("n_children", 1)
        rows = self.changes.get("rows", 3)
        root = ArrowArray(length=rows, n_children=n_children, children=children)
        root.release = self._releaser("array", ArrowArray)
        self.keep += [buffers, column, children]
        ctypes.memmove(out, ctypes.byref(root), ctypes.sizeof(root))
        return 0

    def _entries(self, length, buffers, **_):
        pointers = (ctypes.c_void_p * (1 + len(buffers)))(
            None, *(ctypes.addressof(buffer) for buffer in buffers)
        )
        array = ArrowArray(length=length, n_buffers=len(pointers), buffers=pointers)
        self.keep += [pointers, array]
        return array

    def __arrow_c_stream__(self, requested_schema=None):
        text = ctypes.create_string_buffer(b"the disk is gone")
        last_error = LastError(lambda _: ctypes.addressof(text))
        functions = [Get(self._schema), Get(self._next), last_error]
        self.stream = ArrowStream(*functions, self._releaser("stream", ArrowStream), None)
        self.keep += functions
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, Release]
        return new(ctypes.addressof(self.stream), b"arrow_array_stream", Release())


def _views(*views):
    return (ctypes.c_int32 * (4 * len(views)))(*(word for view in views for word in view))


BYTES = (ctypes.c_char * 40)(*b"bbabba long string of 30 letters...")
TEXTS = [
    (
        {"format": b"u", "n_buffers": 3, "buffers": [(ctypes.c_int32 * 4)(0, 2, 3, 5), BYTES]},
        [1, 0, 1],
    ),
    (
        {"format": b"Z", "n_buffers": 3, "buffers": [(ctypes.c_int64 * 4)(1, 2, 3, 5), BYTES]},
        [1, 0, 2],
    ),
    (
        {
            "format": b"vu",
            "n_buffers": 4,
            "buffers": [
                _views((1, 98, 0, 0), (30, 0, 0, 5), (1, 98, 0, 0)),
                BYTES,
                (ctypes.c_int64 * 1)(35),
            ],
        },
        [1, 0, 1],
    ),
    (
        {
            "format": b"i",
            "buffers": [(ctypes.c_int32 * 3)(1, 0, 1)],
            "entries": {
                "format": b"u",
                "length": 2,
                "buffers": [(ctypes.c_int32 * 3)(0, 2, 3), BYTES],
            },
        },
        [0, 1, 0],
    ),
]


class TestArrowStream:
    def test_everything_is_released_once_and_the_array_last(self):
        stream = HandMade()
        table = ingest(stream)
        assert codes_of(table) == [2, 0, 1]
        assert sorted(stream.released) == ["schema", "stream"]
        del table
        assert sorted(stream.released) == ["array", "schema", "stream"]

    def test_validity_bitmap(self):
        bitmap = (ctypes.c_uint8 * 1)(0b101)
        stream = HandMade(validity=ctypes.addressof(bitmap), null_count=-1)
        assert codes_of(ingest(stream)) == [1, 2, 0]

    @pytest.mark.parametrize(
        ("changes", "text"),
        [
            ({"length": -1}, "negative"),
            ({"length": 2}, "shorter"),
            ({"offset": -4}, "negative"),
            ({"offset": 2**63 - 1}, "overflows"),
            ({"null_count": -2}, "negative"),
            ({"null_count": 1}, "no validity bitmap"),
            ({"n_buffers": 1}, "lacks its buffers"),
            ({"values": None}, "lacks its values"),
            ({"n_children": 2}, "another number of columns"),
            ({"format": None}, "no format"),
            ({"rows": -3}, "negative"),
            ({"error": 5}, "the disk is gone"),
        ],
    )
    def test_broken_streams_are_refused_and_released(self, changes, text):
        stream = HandMade(**changes)
        with pytest.raises(ValueError, match=rf"Arrow stream .* is broken: .*{text}"):
            ingest(stream)
        expected = ["schema", "stream"] if not stream.sent else ["array", "schema", "stream"]
        assert sorted(stream.released) == expected

    @pytest.mark.parametrize(
        ("changes", "codes"), TEXTS, ids=[c["format"].decode() for c, _ in TEXTS]
    )
    def test_strings(self, changes, codes):
        table = ingest(HandMade(**changes))
        assert table.columns.read(0).tolist() == codes

    @pytest.mark.parametrize(
        ("which", "place", "value", "text"),
        [
            (0, 0, -1, "begins before its buffer"),
            (0, 1, 9, "ends before it begins"),
            (0, 3, 0, "ends before it begins"),
            (1, 0, -5, "ends before it begins|begins before"),
            (2, 0, -3, "negative length"),
            (2, 6, 4, "buffer that is not there"),
            (2, 6, -1, "buffer that is not there"),
            (2, 7, 9, "outside its buffer"),
            (2, 7, -9, "outside its buffer"),
            (2, 4, 2**31 - 1, "outside its buffer"),
            (3, 1, 2, "outside its dictionary"),
            (3, 1, -1, "outside its dictionary"),
        ],
    )
    def test_broken_strings_are_refused(self, which, place, value, text):
        changes, _ = TEXTS[which]
        first, *others = changes["buffers"]
        spoilt = type(first)(*first)
        spoilt[place] = value
        stream = HandMade(**{**changes, "buffers": [spoilt, *others]})
        with pytest.raises(ValueError, match=rf"is broken: .*({text})"):
            ingest(stream)
        assert sorted(stream.released) == ["array", "schema", "stream"]

    @pytest.mark.parametrize(
        ("changes", "text"),
        [
            ({"entries": {"format": b"u", "lost": True}}, "an array is null"),
            ({"format": b"g"}, "indices of a dictionary are no integers"),
            ({"entries": {"format": None}}, "a dictionary has no format"),
            ({"n_buffers": 1}, "lacks its buffers"),
            ({"null_count": 2}, "no validity bitmap"),
            ({"length": 2}, "shorter"),
        ],
    )
    def test_broken_dictionaries_are_refused(self, changes, text):
        with pytest.raises(ValueError, match=rf"is broken: .*{text}"):
            ingest(HandMade(**{**TEXTS[3][0], **changes}))

    @pytest.mark.parametrize(
        "kind",
        [b"", b"tsx:", b"td", b"t", b"tt", b"d:", b"d:5,1,77", b"d:5,x", b"d:0,0", b"w:",
         b"w:-1", b"w:99999999999", b"+l", b"+us:0", b"vx", b"?"],
    )  # fmt: skip
    def test_types_that_nobody_knows_are_named(self, kind):
        with pytest.raises(TypeError, match=r"'a' \((nested|Arrow type)"):
            ingest(HandMade(format=kind))

    def test_a_stream_is_read_once(self):
        stream = HandMade()
        capsule = stream.__arrow_c_stream__()
        core.columns_of_arrow(capsule)
        with pytest.raises(ValueError, match="read already"):
            core.columns_of_arrow(capsule)
        with pytest.raises((TypeError, ValueError)):
            core.columns_of_arrow(None)
