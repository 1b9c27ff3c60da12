import SoraLocking
import SoraNetwork
import SoraWire
import Testing

@Suite struct EventLoopTests {
    @Test func runsActorJobsOnItsThread() async throws {
        let lab = try LoopActor()
        defer { lab.stop() }
        let inside = await lab.run { $0.isOnLoop }
        #expect(inside)
        #expect(!lab.loop.isOnLoop)
    }

    @Test func assumeIsolatedWorksInHandlers() async throws {
        let lab = try LoopActor()
        defer { lab.stop() }
        let inbox = Inbox<Bool>()
        lab.loop.execute { inbox.put(lab.assumeIsolated { $0.loop.isOnLoop }) }
        #expect(try await inbox.next())
    }

    @Test func isIsolatingCurrentContextTellsTheTruth() async throws {
        let lab = try LoopActor()
        defer { lab.stop() }
        #expect(lab.loop.isIsolatingCurrentContext() == false)
        let inside = await lab.run { $0.isIsolatingCurrentContext() }
        #expect(inside == true)
    }

    @Test func closuresFromOneThreadRunInOrder() async throws {
        let lab = try LoopActor()
        defer { lab.stop() }
        let inbox = Inbox<Int>()
        for number in 0..<2000 { lab.loop.execute { inbox.put(number) } }
        let seen = try await inbox.collect { $0.count == 2000 }
        #expect(seen == Array(0..<2000))
    }

    @Test func closuresFromManyThreadsAllRun() async throws {
        let lab = try LoopActor()
        defer { lab.stop() }
        let loop = lab.loop
        let inbox = Inbox<Int>()
        await withTaskGroup(of: Void.self) { group in
            for thread in 0..<8 {
                group.addTask {
                    for number in 0..<500 { loop.execute { inbox.put(thread * 1000 + number) } }
                }
            }
        }
        let seen = try await inbox.collect { $0.count == 4000 }
        for thread in 0..<8 {
            #expect(seen.filter { $0 / 1000 == thread } == (0..<500).map { thread * 1000 + $0 })
        }
    }

    @Test func timersFireByDeadlineThenByOrderOfSetting() async throws {
        let lab = try LoopActor()
        defer { lab.stop() }
        let inbox = Inbox<String>()
        await lab.run { loop in
            let base = loop.now
            loop.scheduleTimer(at: base + .milliseconds(20)) { inbox.put("20") }
            loop.scheduleTimer(at: base + .milliseconds(5)) { inbox.put("5a") }
            loop.scheduleTimer(at: base + .milliseconds(5)) { inbox.put("5b") }
            loop.scheduleTimer(at: base - .milliseconds(5)) { inbox.put("past") }
            loop.scheduleTimer(at: base + .milliseconds(10)) { inbox.put("10") }
        }
        let seen = try await inbox.collect { $0.count == 5 }
        #expect(seen == ["past", "5a", "5b", "10", "20"])
    }

    @Test func aTimerNeverFiresEarly() async throws {
        let lab = try LoopActor()
        defer { lab.stop() }
        let inbox = Inbox<Duration>()
        await lab.run { loop in
            for microseconds in [1, 150, 900, 1100, 3300] {
                let deadline = EventLoop.clock() + .microseconds(microseconds)
                loop.scheduleTimer(at: deadline) { inbox.put(EventLoop.clock() - deadline) }
            }
        }
        let late = try await inbox.collect { $0.count == 5 }
        #expect(late.allSatisfy { $0 >= .zero })
    }

    @Test func cancelledAndMovedTimersFireAsLastSet() async throws {
        let lab = try LoopActor()
        defer { lab.stop() }
        let inbox = Inbox<String>()
        let pending = await lab.run { loop in
            let base = loop.now
            let cancelled = loop.scheduleTimer(at: base + .milliseconds(2)) { inbox.put("cancelled") }
            let moved = LoopTimer(on: loop) { inbox.put("moved") }
            moved.schedule(at: base + .milliseconds(1))
            moved.schedule(at: base + .milliseconds(12))
            let never = LoopTimer(on: loop) { inbox.put("never") }
            never.schedule(at: .distantFuture)
            loop.scheduleTimer(at: base + .milliseconds(6)) { inbox.put("fixed") }
            cancelled.cancel()
            cancelled.cancel()
            return loop.pendingTimerCount
        }
        #expect(pending == 2)
        #expect(try await inbox.collect { $0.count == 2 } == ["fixed", "moved"])
        #expect(await lab.run { $0.pendingTimerCount } == 0)
    }

    @Test func manyTimersSurviveRandomMovesInOrder() async throws {
        let lab = try LoopActor()
        defer { lab.stop() }
        let inbox = Inbox<Instant>()
        let expected = await lab.run { loop in
            var random = RandomSource(seed: 7)
            let base = loop.now + .milliseconds(5)
            var timers: [LoopTimer] = []
            for _ in 0..<300 {
                let deadline = base + .microseconds(Int.random(in: 0..<20_000, using: &random))
                timers.append(loop.scheduleTimer(at: deadline) {})
            }
            for timer in timers { timer.cancel() }
            let kept = timers.indices.map { index in
                let deadline = base + .microseconds(Int.random(in: 0..<20_000, using: &random))
                let timer = LoopTimer(on: loop) { inbox.put(deadline) }
                timer.schedule(at: base + .microseconds(Int.random(in: 0..<20_000, using: &random)))
                timer.schedule(at: deadline)
                if index % 3 == 0 { timer.cancel() }
                return (index % 3 == 0) ? nil : deadline
            }
            return kept.compactMap { $0 }.sorted()
        }
        #expect(try await inbox.collect { $0.count == expected.count } == expected)
    }

    @Test func aTimerThatSetsItselfDoesNotStarveJobs() async throws {
        let lab = try LoopActor()
        defer { lab.stop() }
        let inbox = Inbox<Int>()
        let holder = Confined<LoopTimer?>(nil)
        await lab.run { loop in
            let timer = LoopTimer(on: loop) { holder.value?.schedule(at: .zero) }
            holder.value = timer
            timer.schedule(at: .zero)
        }
        lab.loop.execute { inbox.put(1) }
        #expect(try await inbox.next() == 1)
        await lab.run { _ in
            holder.value?.cancel()
            holder.value = nil
        }
    }

    @Test func closuresThatSubmitThemselvesDoNotStarveTimers() async throws {
        let lab = try LoopActor()
        defer { lab.stop() }
        let inbox = Inbox<Int>()
        let goesOn = Locked(true)
        @Sendable func spin() {
            if goesOn.withLock({ $0 }) { lab.loop.execute(spin) }
        }
        spin()
        await lab.run { loop in
            _ = loop.scheduleTimer(at: loop.now + .milliseconds(3)) { inbox.put(3) }
        }
        #expect(try await inbox.next() == 3)
        goesOn.withLock { $0 = false }
    }

    // MEM1: threads and descriptors return to base.
    @Test func twoHundredLoopsLeaveNoThreadAndNoDescriptor() async throws {
        func round() async throws {
            let loop = try EventLoop(name: "flat-loop")
            let done = Inbox<Int>()
            loop.execute { done.put(1) }
            _ = try await done.next()
            loop.stop()
        }
        try await round()
        let before = Resources.descriptors()
        for _ in 0..<200 { try await round() }
        #expect(Resources.threads(named: "flat-loop") == 0)
        // Other suites open a few at the same time; a leak would be 400.
        #expect(Resources.descriptors() < before + 200)
    }

    @Test func stopRunsWhatWasSubmittedAndDropsTimers() async throws {
        let loop = try EventLoop(name: "stop-loop")
        let ran = Locked<[String]>([])
        loop.execute {
            loop.scheduleTimer(at: loop.now + .seconds(3600)) { ran.withLock { $0.append("timer") } }
        }
        loop.execute { ran.withLock { $0.append("closure") } }
        loop.stop()
        loop.stop()
        #expect(ran.withLock { $0 } == ["closure"])
        loop.execute { ran.withLock { $0.append("late") } }
        #expect(ran.withLock { $0 } == ["closure"])
    }

    // EVT2: no task is left suspended by the end of its executor.
    @Test func actorCallsAfterStopStillReturn() async throws {
        let lab = try LoopActor()
        lab.stop()
        #expect(await lab.run { $0.isOnLoop })
        let sum = await withTaskGroup(of: Int.self, returning: Int.self) { group in
            for number in 0..<100 { group.addTask { await lab.run { _ in number } } }
            return await group.reduce(0, +)
        }
        #expect(sum == 4950)
    }

    @Test func stopFromItsOwnThreadEndsTheLoop() async throws {
        let loop = try EventLoop(name: "self-stop")
        let inbox = Inbox<Int>()
        loop.execute {
            loop.stop()
            inbox.put(1)
        }
        #expect(try await inbox.next() == 1)
        loop.stop()
        #expect(Resources.threads(named: "self-stop") == 0)
    }

    // EVT1, EVT3: ending while others submit neither hangs nor loses a task.
    @Test func stoppingUnderFireLosesNoTask() async throws {
        for _ in 0..<20 {
            let lab = try LoopActor()
            let total = try await withThrowingTaskGroup(of: Int.self, returning: Int.self) { group in
                for _ in 0..<4 {
                    group.addTask {
                        var count = 0
                        for _ in 0..<100 {
                            lab.loop.execute {}
                            count += await lab.run { _ in 1 }
                        }
                        return count
                    }
                }
                group.addTask {
                    _ = await lab.run { _ in 0 }
                    lab.stop()
                    return 0
                }
                return try await group.reduce(0, +)
            }
            #expect(total == 400)
        }
    }
}
