import CZlib
import Glibc
import SoraFrames

/// Pictures as PNG files (ISO/IEC 15948): 8-bit RGB, no alpha.
package enum PNGWriter {
    /// The picture, turned upright, as a PNG file's bytes.
    package static func encode(_ frame: VideoFrame) -> [UInt8] {
        let buffer = NearestScaling.rotate(frame.buffer, by: frame.rotation)
        var output: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
        var header: [UInt8] = []
        append(UInt32(buffer.width), to: &header)
        append(UInt32(buffer.height), to: &header)
        header += [8, 2, 0, 0, 0]
        chunk("IHDR", header, to: &output)
        chunk("IDAT", compress(filteredRows(buffer)), to: &output)
        chunk("IEND", [], to: &output)
        return output
    }

    /// Writes to a file beside the target first, so that nobody sees half a picture.
    package static func write(_ frame: VideoFrame, to path: String) throws(DeviceError) {
        let bytes = encode(frame)
        let temporary = path + ".part"
        let descriptor = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else { throw failure(path) }
        var done = 0
        while done < bytes.count {
            let count = bytes.withUnsafeBytes {
                Glibc.write(descriptor, $0.baseAddress?.advanced(by: done), bytes.count - done)
            }
            if count > 0 {
                done += count
            } else if errno != EINTR {
                let problem = failure(path)
                close(descriptor)
                unlink(temporary)
                throw problem
            }
        }
        guard close(descriptor) == 0, rename(temporary, path) == 0 else {
            let problem = failure(path)
            unlink(temporary)
            throw problem
        }
    }

    private static func failure(_ path: String) -> DeviceError {
        .fileNotWritable(path: path, reason: String(cString: strerror(errno)))
    }

    /// RGB rows, each led by its filter: Up (2), the difference to the row above, which suits camera pictures.
    private static func filteredRows(_ buffer: VideoFrameBuffer) -> [UInt8] {
        let (width, height) = (buffer.width, buffer.height)
        let rowLength = 1 + width * 3
        return [UInt8](unsafeUninitializedCapacity: rowLength * height) { output, count in
            guard let base = output.baseAddress else { return }
            buffer.withPlanes { planes in
                for row in 0..<height {
                    let target = base + row * rowLength
                    target[0] = 2
                    let y = planes.y + row * planes.strideY
                    let u = planes.u + row / 2 * planes.strideU
                    let v = planes.v + row / 2 * planes.strideV
                    var out = target + 1
                    for x in 0..<width {
                        // BT.601, video range, in 1/65,536.
                        let luma = 76_309 &* (Int(y[x]) &- 16)
                        let cb = Int(u[x / 2]) &- 128
                        let cr = Int(v[x / 2]) &- 128
                        out[0] = clamp(luma &+ 104_597 &* cr)
                        out[1] = clamp(luma &- 25_675 &* cb &- 53_279 &* cr)
                        out[2] = clamp(luma &+ 132_201 &* cb)
                        out += 3
                    }
                }
            }
            // From the last row up, so that each still finds the row above as it was.
            for row in stride(from: height - 1, to: 0, by: -1) {
                let target = base + row * rowLength + 1
                let above = base + (row - 1) * rowLength + 1
                for index in 0..<(rowLength - 1) { target[index] = target[index] &- above[index] }
            }
            count = rowLength * height
        }
    }

    @inline(__always) private static func clamp(_ value: Int) -> UInt8 {
        UInt8(truncatingIfNeeded: min(max((value &+ 32_768) >> 16, 0), 255))
    }

    private static func compress(_ bytes: [UInt8]) -> [UInt8] {
        let bound = compressBound(uLong(bytes.count))
        return [UInt8](unsafeUninitializedCapacity: Int(bound)) { output, count in
            var length = bound
            // Level 3: snapshots are taken beside running video.
            let code = compress2(output.baseAddress, &length, bytes, uLong(bytes.count), 3)
            count = code == Z_OK ? Int(length) : 0
        }
    }

    private static func chunk(_ type: String, _ data: [UInt8], to output: inout [UInt8]) {
        append(UInt32(data.count), to: &output)
        let body = Array(type.utf8) + data
        output += body
        append(UInt32(truncatingIfNeeded: crc32(0, body, uInt(body.count))), to: &output)
    }

    private static func append(_ value: UInt32, to output: inout [UInt8]) {
        for shift: UInt32 in [24, 16, 8, 0] { output.append(UInt8(truncatingIfNeeded: value >> shift)) }
    }
}
