import Foundation
internal import SoraLocking

/// The machine and system that the program runs on.
public struct DeviceInfo: Sendable {
    /// The product's name, or the processor's architecture.
    public let machineName: String
    /// The name of the distribution.
    public let systemName: String
    /// The version of the distribution, or of the kernel.
    public let systemVersion: String

    /// `machineName; systemName systemVersion`
    public var description: String { "\(machineName); \(systemName) \(systemVersion)" }

    private static let slot = Locked<DeviceInfo?>(nil)

    /// Read from files once, on first use, on whatever thread; may be replaced.
    public static var current: DeviceInfo {
        get {
            if let known = slot.read() { return known }
            let found = DeviceInfo.read()
            return slot.withLock { value in
                if value == nil { value = found }
                return value ?? found
            }
        }
        set { slot.write(newValue) }
    }

    init(machineName: String, systemName: String, systemVersion: String) {
        self.machineName = machineName
        self.systemName = systemName
        self.systemVersion = systemVersion
    }

    static func read() -> DeviceInfo {
        let release = osRelease()
        var names = utsname()
        uname(&names)
        let machine = withUnsafeBytes(of: &names.machine) { text(in: $0) }
        let kernel = withUnsafeBytes(of: &names.release) { text(in: $0) }
        let product = firstLine(of: "/sys/devices/virtual/dmi/id/product_name")
        return DeviceInfo(
            machineName: product ?? (machine.isEmpty ? "unknown" : machine),
            systemName: release["NAME"] ?? "Linux",
            systemVersion: release["VERSION_ID"] ?? kernel)
    }

    private static func text(in buffer: UnsafeRawBufferPointer) -> String {
        String(decoding: buffer.prefix { $0 != 0 }, as: UTF8.self)
    }

    private static func firstLine(of path: String) -> String? {
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else { return nil }
        let line = text.prefix { $0 != "\n" }.trimmingCharacters(in: .whitespaces)
        return line.isEmpty ? nil : line
    }

    /// `KEY=value` lines of `/etc/os-release`, without quotation marks.
    private static func osRelease() -> [String: String] {
        guard let text = try? String(contentsOfFile: "/etc/os-release", encoding: .utf8) else { return [:] }
        var values: [String: String] = [:]
        for line in text.split(separator: "\n") {
            guard let equals = line.firstIndex(of: "=") else { continue }
            let value = line[line.index(after: equals)...].trimmingCharacters(in: CharacterSet(charactersIn: "\"'"))
            values[String(line[..<equals])] = value
        }
        return values
    }
}
