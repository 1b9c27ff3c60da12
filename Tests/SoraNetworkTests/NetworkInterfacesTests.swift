import Foundation
import SoraNetwork
import SoraWire
import Testing

@Suite struct NetworkInterfacesTests {
    @Test func loopbackIsListedOnlyOnRequest() {
        let all = NetworkInterfaces.current(includesLoopback: true)
        let loop = all.first { $0.address == .loopbackV4 }
        #expect(loop?.name == "lo")
        #expect(loop?.prefixLength == 8)
        #expect(loop?.flags.contains(.loopback) == true)
        let others = NetworkInterfaces.current()
        #expect(!others.contains { $0.address.isLoopback })
        #expect(Set(others).isSubset(of: Set(all)))
    }

    @Test func changesOfAddressesAreTold() async throws {
        /// Runs `ip` and tells whether it succeeded.
        func ip(_ arguments: String...) -> Bool {
            guard
                let path = ["/usr/sbin/ip", "/sbin/ip", "/usr/bin/ip"].first(
                    where: FileManager.default.isExecutableFile)
            else {
                return false
            }
            let process = Process()
            process.executableURL = URL(fileURLWithPath: path)
            process.arguments = arguments
            process.standardError = FileHandle.nullDevice
            guard (try? process.run()) != nil else { return false }
            process.waitUntilExit()
            return process.terminationStatus == 0
        }
        let lab = try LoopActor()
        defer { lab.stop() }
        let inbox = Inbox<[NetworkInterface]>()
        try await lab.run { loop in
            let monitor = try NetworkChangeMonitor(on: loop, includesLoopback: true)
            monitor.onChange = { inbox.put($0) }
        }
        guard ip("address", "add", "127.86.0.1/32", "dev", "lo") else {
            print("skipped: changing addresses needs the ip command and the right to use it")
            return
        }
        defer { _ = ip("address", "del", "127.86.0.1/32", "dev", "lo") }
        _ = try await inbox.collect { $0.last?.contains { $0.address == IPAddress("127.86.0.1") } == true }
    }
}
