import HeraldModel
package import NIOCore

extension ByteBuffer {
    /// Appends a notification in its form, without the items that the form does not have.
    /// - Returns: false, without appending, if its payload has more than 65,535 bytes.
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
            writeInteger(UInt16(notification.token.byteCount))
            writeToken(notification.token)
            writeInteger(payloadLength)
            writeBytes(notification.payload)
        case .framed:
            writeFrame(notification, payloadLength)
        }
        return true
    }

    /// Appends a frame with an empty token, which every service refuses.
    ///
    /// Its error response confirms that everything before it was accepted.
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
        writeMultipleIntegers(BinaryItem.token, UInt16(notification.token.byteCount))
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

    private mutating func writeToken(_ token: PushToken) {
        if let words = token.own?.words {
            writeMultipleIntegers(words.0, words.1, words.2, words.3)
        } else {
            writeBytes(token.bytes)
        }
    }
}
