import HeraldModel
import HeraldWire
import NIOCore

/// The bytes of the documents, computed by hand from their tables.
enum BinarySamples {
    static let token = DeviceToken(
        words: (0x0001_0203_0405_0607, 0x0809_0A0B_0C0D_0E0F, 0x1011_1213_1415_1617, 0x1819_1A1B_1C1D_1E1F)
    )
    static let pushToken = PushToken(token)
    static let payload = Array(#"{"aps":{"alert":"hi"}}"#.utf8)

    static let simple = bytes(
        """
        000020000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f00167b22617073223a7b22616c
        657274223a226869227d7d
        """
    )
    static let enhanced = bytes(
        """
        01010203046553f1000020000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f00167b2261
        7073223a7b22616c657274223a226869227d7d
        """
    )
    static let framed = bytes(
        """
        020000004e010020000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f0200167b22617073
        223a7b22616c657274223a226869227d7d030004010203040400046553f1000500010a
        """
    )
    static let error = bytes("080801020304")
    static let tuple = bytes("6553f1000020000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f")

    /// The same three, as notifications.
    static let notifications: [(bytes: [UInt8], notification: BinaryNotification)] = [
        (simple, BinaryNotification(form: .simple, token: pushToken, payload: payload)),
        (
            enhanced,
            BinaryNotification(
                form: .enhanced,
                identifier: 0x0102_0304,
                expiration: 1_700_000_000,
                token: pushToken,
                payload: payload
            )
        ),
        (
            framed,
            BinaryNotification(
                form: .framed,
                identifier: 0x0102_0304,
                expiration: 1_700_000_000,
                priority: .immediate,
                token: pushToken,
                payload: payload
            )
        ),
    ]

    static func bytes(_ hex: String) -> [UInt8] {
        Hex.bytes(hex.filter { !$0.isWhitespace }) ?? []
    }

    /// A frame of these items.
    static func frame(_ items: (UInt8, [UInt8])...) -> [UInt8] {
        frame(items)
    }

    static func frame(_ items: [(UInt8, [UInt8])]) -> [UInt8] {
        var buffer = ByteBuffer()
        for (number, content) in items {
            buffer.writeMultipleIntegers(number, UInt16(content.count))
            buffer.writeBytes(content)
        }
        return [2] + bigEndian(UInt32(buffer.readableBytes)) + Array(buffer.readableBytesView)
    }

    static func bigEndian(_ number: some FixedWidthInteger) -> [UInt8] {
        withUnsafeBytes(of: number.bigEndian) { Array($0) }
    }

    static let identifierItem: (UInt8, [UInt8]) = (3, [1, 2, 3, 4])
    static let tokenItem: (UInt8, [UInt8]) = (1, token.bytes)
    static let payloadItem: (UInt8, [UInt8]) = (2, payload)
}
