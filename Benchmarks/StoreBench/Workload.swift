import HeraldModel

/// The notifications of a run: the same for both.
struct Workload {
    let notifications: [Notification]

    init(_ options: StoreBench.Options) {
        let now = WallTime(seconds: 1_800_000_000)
        let payload =
            Array("{\"aps\":{\"alert\":\"".utf8)
            + [UInt8](repeating: UInt8(ascii: "x"), count: max(0, options.payload - 21)) + Array("\"}}".utf8)
        var generator = Generator()
        notifications = (0..<options.count).map { number in
            // Replacement in random order, as devices are.
            let place = options.slots < options.count ? Int.random(in: 0..<options.slots, using: &generator) : number
            return Notification(
                id: .random(using: &generator),
                uniqueID: .random(using: &generator),
                slot: Slot(device: DeviceNumber(UInt64(place) + 1), app: AppNumber(1)),
                received: now,
                storedUntil: now + .seconds(30 * 86_400),
                priority: .immediate,
                pushType: .alert,
                collapseID: nil,
                payload: payload
            )
        }
    }
}

/// The same numbers in every run (a linear congruential generator, mixed); for nothing but this.
private struct Generator: RandomNumberGenerator {
    private var state: UInt64 = 1

    mutating func next() -> UInt64 {
        state = state &* 0x5851_F42D_4C95_7F2D &+ 0x1405_7B7E_F767_814F
        return (state ^ state >> 29) &* 0xD6E8_FEB8_6659_FD93
    }
}
