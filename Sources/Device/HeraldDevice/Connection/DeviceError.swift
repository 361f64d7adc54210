public import HeraldModel

/// An error of a device's client or of a simulated device.
public struct DeviceError: CodedError {
    /// The kind of failure.
    public enum Code: Hashable, Sendable {
        /// The identity file does not contain a device certificate with its private key.
        case badIdentity
        /// The authority's certificate cannot be read.
        case badAuthority
        /// The service refuses this device; another attempt would end in the same way until something changes there.
        case refused
        /// The service refuses this device for good: its certificate is revoked, has expired, or is useless there.
        case dismissed
        /// There is no connection; a running client reconnects by itself.
        case unreachable
        /// The client is already running.
        case busy
        /// The device cannot do this: there is no such app or notification, or its state does not allow it.
        case notPossible
        /// The device's folder, or a file in it, cannot be used.
        case badFolder
        /// Another agent uses the device's folder.
        case folderInUse
    }

    /// The kind of failure; errors are equal if their codes are.
    public let code: Code
    /// An explanation for people, on one line.
    public let message: String

    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }
}
