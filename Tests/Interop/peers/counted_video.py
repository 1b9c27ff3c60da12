"""Pictures with a number burnt in, and the reading of it: what SoraFrames' FrameCounter does, for Python.

Two rows of twenty cells at the top, each row a twelfth of the picture high, hold 32 bits in Gray code and 8 bits of
CRC. The sender of number n is n >> 20.
"""

import numpy

COLUMNS = 20


def checksum(gray):
    crc = 0xA5
    for byte in gray.to_bytes(4, "little"):
        crc ^= byte
        for _ in range(8):
            crc = ((crc << 1) ^ 0x07) & 0xFF if crc & 0x80 else (crc << 1) & 0xFF
    return crc


def draw(picture, number):
    """Into the top of an array of height × width × 3."""
    height, width, _ = picture.shape
    gray = number ^ (number >> 1)
    bits = gray | checksum(gray) << 32
    row_height = max(2, height // 12)
    for bit in range(2 * COLUMNS):
        row, column = divmod(bit, COLUMNS)
        cells = slice(width * column // COLUMNS, width * (column + 1) // COLUMNS)
        picture[row * row_height : (row + 1) * row_height, cells] = 255 if bits >> bit & 1 else 0


def read(picture):
    """The number, or None if there is none or if it is damaged."""
    height, width, _ = picture.shape
    row_height = max(2, height // 12)
    bits = 0
    for bit in range(2 * COLUMNS):
        row, column = divmod(bit, COLUMNS)
        left, right = width * column // COLUMNS, width * (column + 1) // COLUMNS
        inset = (right - left) // 4
        top, bottom = row * row_height + row_height // 4, (row + 1) * row_height - row_height // 4
        if picture[top:bottom, left + inset : right - inset, 1].mean() >= 128:
            bits |= 1 << bit
    gray = bits & 0xFFFFFFFF
    if bits >> 32 != checksum(gray):
        return None
    number = gray
    for shift in (1, 2, 4, 8, 16):
        number ^= number >> shift
    return number


class Seen:
    """What a receiver saw of one track."""

    def __init__(self):
        self.reset()

    def reset(self):
        self.frames = self.unreadable = self.step = self.backwards = 0
        self.senders = []
        self.first = self.last = None

    def see(self, picture):
        self.frames += 1
        self.size = (picture.shape[1], picture.shape[0])
        number = read(picture)
        if number is None:
            self.unreadable += 1
            return
        if number >> 20 not in self.senders:
            self.senders.append(number >> 20)
        if self.first is None:
            self.first = number
        if self.last is not None:
            self.step = max(self.step, number - self.last)
            self.backwards += number < self.last
        self.last = number

    def report(self):
        width, height = getattr(self, "size", (0, 0))
        return {
            "frames": self.frames,
            "unreadable": self.unreadable,
            "senders": self.senders,
            "first": self.first,
            "last": self.last,
            "step": self.step,
            "backwards": self.backwards,
            "width": width,
            "height": height,
        }
