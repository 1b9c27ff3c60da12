import Foundation
import TestSupport
import Testing

@testable import Sora

@Suite(.serialized, .leavesNoObjects) struct HandlersTests {
    private final class OnDeinit: Sendable {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
        deinit { body() }
    }

    @Test func aHandlerMayClearItself() {
        let handlers = MediaChannelHandlers()
        let journal = Journal()
        handlers.onConnect = { [unowned handlers] _ in
            handlers.onConnect = nil
            handlers.onDataChannel = { _ in }
            journal.add("called")
        }
        handlers.onConnect?(nil)
        handlers.onConnect?(nil)
        #expect(journal.entries == ["called"])
        #expect(handlers.onDataChannel != nil)
    }

    @Test func theOldHandlerIsDestroyedOutsideOfTheLock() {
        let handlers = MediaChannelHandlers()
        let journal = Journal()
        do {
            let shared = Transfer(handlers)
            let canary = OnDeinit { journal.add("\(shared.value.onConnect == nil)") }
            handlers.onConnect = { _ in withExtendedLifetime(canary) {} }
        }
        handlers.onConnect = nil
        #expect(journal.entries == ["true"])
    }

    // api 5.69
    @Test func concurrentWritesAndCallsNeverTear() async {
        let handlers = Transfer(MediaStreamHandlers())
        await withTaskGroup(of: Void.self) { group in
            for value in 0..<4 {
                group.addTask {
                    for _ in 0..<2_000 {
                        handlers.value.onSwitchVideo = value % 2 == 0 ? { _ in _ = value } : nil
                        handlers.value.onSwitchVideo?(true)
                    }
                }
            }
        }
        handlers.value.onSwitchVideo = nil
        #expect(handlers.value.onSwitchVideo == nil)
    }

    @Test func everySlotIsItsOwn() {
        let handlers = SoraHandlers()
        handlers.onConnect = { _, _ in }
        #expect(handlers.onDisconnect == nil && handlers.onAddMediaChannel == nil)
        #expect(handlers.onRemoveMediaChannel == nil && handlers.onChangeAudioRoute == nil)
        let camera = CameraVideoCapturerHandlers()
        camera.onStart = { _ in }
        #expect(camera.onStop == nil && camera.onCapture == nil)
        let socket = WebSocketChannelHandlers()
        #expect(socket.onReceive == nil)
    }
}
