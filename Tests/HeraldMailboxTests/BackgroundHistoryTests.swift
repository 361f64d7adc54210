import HeraldModel
import HeraldTestSupport
import Testing

@testable import HeraldMailbox

/// Random histories of one app on one device: whatever happens, its background notifications keep to the budget, nothing
/// comes twice on one connection or after something newer, and the newest comes in the end.
@Suite struct BackgroundHistoryTests {
    /// SplitMix64: the same numbers for the same seed, everywhere.
    private struct Generator: RandomNumberGenerator {
        var state: UInt64

        mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var mixed = state
            mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
            mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
            return mixed ^ (mixed >> 31)
        }
    }

    /// The view of a device.
    private struct Witness {
        /// When each background notification came first.
        var background: [UInt64: WallTime] = [:]
        var seenOnConnection: Set<UInt64> = []
        var newestOnConnection: UInt64 = 0
        var newestAcknowledged: UInt64 = 0
        var unacknowledged: [Delivery] = []
        var violations: [String] = []

        mutating func reconnected() {
            seenOnConnection = []
            newestOnConnection = 0
            unacknowledged = []
        }

        mutating func look(_ deliveries: [Delivery], at now: WallTime) {
            for delivery in deliveries {
                let notification = delivery.envelope.notification
                let id = notification.id.low
                if !seenOnConnection.insert(id).inserted { violations.append("\(id) came twice on one connection") }
                if id < newestOnConnection { violations.append("\(id) came after \(newestOnConnection)") }
                newestOnConnection = id
                unacknowledged.append(delivery)
                if notification.pushType == .background, background[id] == nil { background[id] = now }
            }
        }

        /// How many came in the hour that ends with each of them.
        func mostInAnHour() -> Int {
            let times = background.values
            return times.map { end in times.count { $0 > end - .seconds(3600) && $0 <= end } }.max() ?? 0
        }
    }

    @Test(arguments: 0..<20)
    func `four hundred random steps keep the budget and lose no notification`(seed: UInt64) async throws {
        var random = Generator(state: seed)
        let scene = try await PostOfficeScene()
        var witness = Witness()
        var link: PostOfficeScene.Link? = try await scene.connect()
        var posted: UInt64 = 0
        var isSaving = false
        for _ in 0..<400 {
            switch Int.random(in: 0..<100, using: &random) {
            case 0..<40:
                let isBackground = Int.random(in: 0..<4, using: &random) > 0
                let isUrgent = !isBackground && Bool.random(using: &random)
                _ = scene.post(isBackground ? .background : .alert, priority: isUrgent ? .immediate : .conserving)
                posted += 1
            case 40..<60:
                scene.acknowledge(witness.unacknowledged)
                for delivery in witness.unacknowledged {
                    witness.newestAcknowledged = max(witness.newestAcknowledged, delivery.envelope.notification.id.low)
                }
                witness.unacknowledged = []
            case 60..<75: try await scene.pass(.seconds(Int64.random(in: 1...900, using: &random)))
            case 75..<80: scene.postOffice.tick()
            case 80..<85 where link != nil:
                isSaving.toggle()
                try await scene.setSaving(isSaving)
            case 85..<90 where link != nil:
                scene.disconnect()
                link = nil
            case 90..<95:
                link = try await scene.connect(saving: isSaving)
                witness.reconnected()
            default: try await scene.settle()
            }
            witness.look(link?.take() ?? [], at: scene.clock.now())
        }
        link = try await scene.connect()
        witness.reconnected()
        for _ in 0..<5 {
            try await scene.pass(.seconds(1200))
            witness.look(link?.take() ?? [], at: scene.clock.now())
        }
        for delivery in witness.unacknowledged {
            witness.newestAcknowledged = max(witness.newestAcknowledged, delivery.envelope.notification.id.low)
        }
        scene.acknowledge(witness.unacknowledged)
        try await scene.settle()
        #expect(witness.violations.isEmpty, "seed \(seed): \(witness.violations.prefix(3))")
        #expect(witness.newestAcknowledged == posted && scene.store.count == 0, "seed \(seed)")
        // A burst, and what comes back in an hour.
        #expect(witness.mostInAnHour() <= 6 && witness.background.count > 10, "seed \(seed)")
        scene.disconnect()
        try await scene.settle()
        #expect(scene.postOffice.memory.current == 0 || !witness.unacknowledged.isEmpty)
    }
}
