import HeraldModel
import HeraldTestSupport
import Synchronization
import Testing

@testable import HeraldDevice

struct RenewalPlanTests {
    private let begins = WallTime(seconds: 1_000_000)
    private let day = Duration.seconds(86_400)
    private var expires: WallTime { begins + day * 30 }

    @Test func `a certificate is renewed at two thirds of its life, or a little sooner`() {
        #expect(RenewalPlan(begins: begins, expires: expires, random: 0).nextAttempt == begins + day * 20)
        #expect(RenewalPlan(begins: begins, expires: expires, random: 1).nextAttempt == begins + day * 19)
        let plan = RenewalPlan(begins: begins, expires: expires, random: 0)
        #expect(plan.step(at: begins) == .wait(day * 20))
        #expect(plan.step(at: begins + day * 20) == .renew)
        #expect(plan.step(at: expires) == .expired)
    }

    @Test func `after failures the pauses grow, with jitter, and there is always another attempt in time`() {
        var plan = RenewalPlan(begins: begins, expires: expires, random: 0)
        var now = begins + day * 20
        #expect(plan.failed(at: now, random: 0) == .seconds(30))
        #expect(plan.failed(at: now, random: 1) == .seconds(120))
        #expect(plan.step(at: now) == .wait(.seconds(120)))
        #expect(plan.failed(at: now, random: 1) == .seconds(240))
        var attempts = 0
        while now < expires {
            let pause = plan.failed(at: now, random: 1)
            #expect(pause <= RenewalPlan.longestPause && pause >= .seconds(30))
            now = now + pause
            attempts += 1
        }
        #expect((30...200).contains(attempts))
        #expect(plan.step(at: now) == .expired)
    }

    @Test func `Retry-After is respected, within limits`() {
        var plan = RenewalPlan(begins: begins, expires: expires, random: 0)
        #expect(plan.failed(at: begins, random: 0, retryAfter: .seconds(3600)) == .seconds(3600))
        #expect(plan.failed(at: begins, random: 0, retryAfter: day * 300) == RenewalPlan.longestPause)
    }

    @Test func `a certificate without validity, and a clock before it, are handled`() {
        #expect(RenewalPlan(begins: expires, expires: begins, random: 0).step(at: expires) == .expired)
        #expect(RenewalPlan(begins: begins, expires: begins, random: 0).step(at: begins) == .expired)
        let plan = RenewalPlan(begins: begins, expires: expires, random: .nan)
        guard case .wait = plan.step(at: begins - day) else { return #expect(Bool(false)) }
    }
}

struct DeviceRenewalTests {
    /// A service that renews, or does not, and a clock that sleeping moves.
    private final class Scenario: Sendable {
        let trust: TestTrust
        let folder: DeviceFolder
        let isReachable = Mutex(true)
        let sleeps = Mutex<[Duration]>([])

        init() async throws {
            trust = try await TestTrust()
            folder = DeviceFolder(trust.path + "/device")
            let (_, pem) = try await trust.device("lamp")
            try folder.save(
                identity: Array(pem.utf8),
                authority: Array(pem.utf8),
                service: DeviceFolder.Service(
                    announced: [.init(host: "localhost", port: 5223, activation: 2191)],
                    announcementKey: "",
                    announcement: 1
                ),
                replaces: false
            )
        }

        var renewal: DeviceRenewal {
            DeviceRenewal(
                folder: folder,
                clock: trust.clock,
                sleep: { time in
                    self.sleeps.withLock { $0.append(time) }
                    self.trust.clock.advance(by: time)
                },
                random: { 0 },
                renew: {
                    guard self.isReachable.withLock({ $0 }) else { throw EnrollmentError(.unreachable, "nobody") }
                    let issued = try await self.trust.device("lamp-\(self.trust.now.seconds)")
                    try self.folder.replaceIdentity(Array(issued.pem.utf8))
                    return try self.folder.credential()
                }
            )
        }
    }

    private struct Enough: Error {}

    @Test func `the new identity is saved before it is reported`() async throws {
        let scene = try await Scenario()
        let before = try #require(try scene.folder.validity())
        await #expect(throws: Enough.self) {
            try await scene.renewal.run { event in
                guard case .renewed(let credential, let expires) = event else { throw CancellationError() }
                #expect(try scene.folder.credential().id == credential.id)
                #expect(expires > before.expires)
                throw Enough()
            }
        }
        #expect(scene.trust.now < before.expires)
        #expect(scene.sleeps.withLock { $0.allSatisfy { $0 <= DeviceRenewal.longestSleep } })
    }

    @Test func `an unreachable service is tried again, and the renewal is made up for`() async throws {
        let scene = try await Scenario()
        scene.isReachable.withLock { $0 = false }
        var failures = 0
        await #expect(throws: Enough.self) {
            try await scene.renewal.run { event in
                switch event {
                case .failed(let reason, _):
                    #expect(reason == "nobody")
                    failures += 1
                    if failures == 5 { scene.isReachable.withLock { $0 = true } }
                case .renewed: throw Enough()
                case .expired: throw CancellationError()
                }
            }
        }
        #expect(failures == 5)
    }

    @Test func `a certificate that a wrong clock calls expired is renewed once the clock is right`() async throws {
        let scene = try await Scenario()
        let ahead = Duration.seconds(20 * 365 * 86_400)
        scene.trust.clock.advance(by: ahead)
        let looks = Mutex(0)
        let renewal = DeviceRenewal(
            folder: scene.folder,
            clock: scene.trust.clock,
            sleep: { time in
                scene.trust.clock.advance(by: time)
                let count = looks.withLock { looks in
                    looks += 1
                    return looks
                }
                if count == 3 { scene.trust.clock.advance(by: .zero - ahead) }
            },
            random: { 0 },
            // No refusal of the service: it ends the run no more than one does.
            renew: { throw DeviceError(.badFolder, "unreadable") }
        )
        var expired = 0
        await #expect(throws: Enough.self) {
            try await renewal.run { event in
                switch event {
                case .expired: expired += 1
                case .failed: throw Enough()
                case .renewed: throw CancellationError()
                }
            }
        }
        #expect(expired == 1 && looks.withLock { $0 } > 3)
    }
}
