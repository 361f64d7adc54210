import HeraldJSON

/// The JSON messages of devices.
///
/// Each is one object. A member twice makes it invalid, since readers could understand it differently; unknown members are
/// ignored.
enum DeviceMessage {
    /// Reads `apps/<topic>/settings`: `{"enabled":false}` when the user switched notifications off.
    static func isEnabled(_ json: [UInt8]) -> Bool? {
        JSON.Object(json)?["enabled"]?.truth
    }

    /// Reads `device/power`: `{"saving":true}` while the device saves power.
    static func isSavingPower(_ json: [UInt8]) -> Bool? {
        JSON.Object(json)?["saving"]?.truth
    }
}
