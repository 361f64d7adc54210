import HeraldModel
package import NIOCore

extension ByteBuffer {
    /// Appends a notification in its form; what the form has no place for is left out.
    /// - Returns: false if its payload has more than 65,535 bytes, which no form can say; nothing is appended then.
    @discardableResult
    package mutating func writeNotification(_ notification: BinaryNotification) -> Bool {
        guard let payloadLength = UInt16(exactly: notification.payload.count) else { return false }
        switch notification.form {
        case .simple, .enhanced:
            writeInteger(notification.form.rawValue)
            if notification.form == .enhanced {
                writeInteger(notification.identifier ?? 0)
                writeInteger(notification.expiration ?? 0)
            }
            writeInteger(UInt16(DeviceToken.byteCount))
            writeToken(notification.token)
            writeInteger(payloadLength)
            writeBytes(notification.payload)
        case .framed:
            writeFrame(notification, payloadLength)
        }
        return true
    }

    /// Appends a frame that no service can take, with the least that is wrong: its token is empty.
    ///
    /// Its error response says that everything before it was accepted.
    package mutating func writeCheckpoint(_ identifier: UInt32) {
        let payload: StaticString = "{}"
        writeInteger(BinaryNotification.Form.framed.rawValue)
        writeInteger(UInt32(3 + 3 + payload.utf8CodeUnitCount + 3 + 4))
        writeMultipleIntegers(BinaryItem.token, UInt16(0))
        writeMultipleIntegers(BinaryItem.payload, UInt16(payload.utf8CodeUnitCount))
        writeStaticString(payload)
        writeMultipleIntegers(BinaryItem.identifier, UInt16(4), identifier)
    }

    private mutating func writeFrame(_ notification: BinaryNotification, _ payloadLength: UInt16) {
        writeInteger(notification.form.rawValue)
        let lengthIndex = writerIndex
        writeInteger(UInt32(0))
        let start = writerIndex
        writeMultipleIntegers(BinaryItem.token, UInt16(DeviceToken.byteCount))
        writeToken(notification.token)
        writeMultipleIntegers(BinaryItem.payload, payloadLength)
        writeBytes(notification.payload)
        if let identifier = notification.identifier {
            writeMultipleIntegers(BinaryItem.identifier, UInt16(4), identifier)
        }
        if let expiration = notification.expiration {
            writeMultipleIntegers(BinaryItem.expiration, UInt16(4), expiration)
        }
        if let priority = notification.priority {
            writeMultipleIntegers(BinaryItem.priority, UInt16(1), priority.rawValue)
        }
        setInteger(UInt32(truncatingIfNeeded: writerIndex - start), at: lengthIndex)
    }

    mutating func writeToken(_ token: DeviceToken) {
        writeMultipleIntegers(token.words.0, token.words.1, token.words.2, token.words.3)
    }
}
