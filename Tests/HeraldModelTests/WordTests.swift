import HeraldModel
import Testing

@Suite struct WordTests {
    @Test(arguments: ["com.example.chat", "a", "com.example.chat.voip", "com.apple.mgmt.External.0A-1_b"])
    func `a topic has alphanumerics, hyphens, underscores and points`(name: String) {
        #expect(Topic(name)?.name == name)
    }

    @Test(arguments: [
        "", ".", "a.", ".a", "a..b", "a b", "a/b", "a+", "#", "é", "a\u{0}", String(repeating: "a", count: 201),
    ])
    func `nothing else is a topic`(name: String) {
        #expect(Topic(name) == nil)
    }

    @Test func `identifiers are read in either case and written in lower case`() {
        let text = "F4121B12-E0BF-3266-F079-D9253E98BF49"
        #expect(NotificationID(text)?.description == text.lowercased())
        for hostile in [
            "", "F4121B12E0BF3266F079D9253E98BF49", "\(text)0", "G" + text.dropFirst(), text.dropLast() + "-",
        ] {
            #expect(NotificationID(hostile) == nil)
        }
    }

    @Test func `random identifiers are UUIDs of version 4`() {
        let text = NotificationID.random().description
        #expect(text.utf8.count == 36)
        #expect(Array(text)[14] == "4")
        #expect("89ab".contains(Array(text)[19]))
    }

    @Test func `a token is 64 digits, and its description does not leak it`() {
        let hex = (0..<32).map { Hex.text([UInt8($0)]) }.joined()
        let token = DeviceToken(hex.uppercased())
        #expect(token?.hex == hex)
        #expect(token?.bytes == (0..<32).map { UInt8($0) })
        #expect("\(token.map(String.init(describing:)) ?? "")" == "00010203…")
        for hostile in ["", String(hex.dropLast()), hex + "0", "g" + hex.dropFirst(), " " + hex.dropFirst()] {
            #expect(DeviceToken(hostile) == nil)
        }
    }

    @Test func `a device token has a digit in every place`() {
        let digits = Array("0123456789abcdef89ABCDEF01234567fedcba98765432100f1e2d3c4b5a6978".utf8)
        for place in digits.indices {
            for byte in UInt8.min...UInt8.max {
                var text = digits
                text[place] = byte
                let token = DeviceToken(hex: text)
                guard let value = Hex.value(of: byte) else {
                    #expect(token == nil, "byte \(byte) in place \(place)")
                    continue
                }
                var expected = DeviceToken(hex: digits)?.bytes ?? []
                let shift = place % 2 == 0 ? 4 : 0
                expected[place / 2] = expected[place / 2] & ~(0xF << shift) | value << shift
                #expect(token?.bytes == expected)
            }
        }
    }

    @Test func `an expiration is absent, zero or a moment`() {
        let now = WallTime(seconds: 1000)
        #expect(Expiration("0") == .once)
        #expect(Expiration("1700000000") == .at(WallTime(seconds: 1_700_000_000)))
        for hostile in ["", "-1", "1.5", "x", " 1", "+1", "0x10", "9999999999999999999"] {
            #expect(Expiration(hostile) == nil)
        }
        #expect(Expiration.unspecified.storedUntil(now: now, longest: .seconds(10)) == WallTime(seconds: 1010))
        #expect(Expiration.once.storedUntil(now: now, longest: .seconds(10)) == nil)
        #expect(Expiration.at(WallTime(seconds: 300)).storedUntil(now: now, longest: .seconds(10)) == nil)
        #expect(
            Expiration.at(WallTime(seconds: 5000)).storedUntil(now: now, longest: .seconds(10))
                == WallTime(seconds: 1010)
        )
        #expect(
            Expiration.at(WallTime(seconds: 1005)).storedUntil(now: now, longest: .seconds(10))
                == WallTime(seconds: 1005)
        )
    }

    @Test func `every refusal reason has a documented status`() {
        #expect(
            RefusalReason.allCases.allSatisfy { [400, 403, 404, 405, 410, 413, 429, 500, 503].contains($0.httpStatus) }
        )
        #expect(RefusalReason.unregistered.httpStatus == 410)
        #expect(RefusalReason.badEnvironmentKeyInToken.reason == "BadEnvironmentKeyInToken")
    }

    @Test func `times that do not fit saturate instead of trapping`() {
        #expect(WallTime(seconds: .max).milliseconds == .max)
        #expect(WallTime(milliseconds: .max) + .seconds(1) == WallTime(milliseconds: .max))
        #expect(WallTime(milliseconds: -1).seconds == -1)
    }

    @Test func `a sandbox name asks for the sandbox`() {
        #expect(PushEnvironment.named(by: "api.Sandbox.push.apple.com:443") == .sandbox)
        #expect(PushEnvironment.named(by: "api.development.push.apple.com") == .sandbox)
        #expect(PushEnvironment.named(by: "SANDBOX") == .sandbox)
        #expect(PushEnvironment.named(by: "my-sandbox"[...]) == .sandbox)
        #expect(PushEnvironment.named(by: "api.push.apple.com") == nil)
        for name in ["", "sandbo", "sand.box", "andbox.s", "developmen", "\u{13}andbox", "s\u{E0}ndbox"] {
            #expect(PushEnvironment.named(by: name) == nil, "\(name)")
        }
    }
}
