import HeraldJSON

/// The JSON messages of devices.
///
/// Each is one object with one truth value. A member twice makes it invalid, since readers could understand it differently;
/// unknown members are ignored.
enum DeviceMessage: String {
    /// `apps/<topic>/settings`: `{"enabled":false}` when the user switched notifications off.
    case enabled
    /// `device/power`: `{"saving":true}` while the device saves power.
    case saving

    /// A payload that is not such a message.
    struct Fault: Error {
        /// The mistake, and the right form.
        let message: String
    }

    /// Reads `device/service`: the version of the announcement that the device has.
    static func announcement(_ payload: [UInt8]) throws(Fault) -> Int64 {
        guard let version = JSON.Object(payload)?["version"]?.number?.exactly(Int64.self) else {
            throw Fault(message: #"the payload names no version: send {"version":1796000000000}"#)
        }
        return version
    }

    /// Reads the truth value.
    func truth(_ payload: [UInt8]) throws(Fault) -> Bool {
        let form = #"send {"\#(rawValue)":true} or {"\#(rawValue)":false}"#
        guard let object = JSON.Object(payload) else {
            throw Fault(message: "the payload is not a JSON object, or has a member twice: \(form)")
        }
        guard let member = object[rawValue] else {
            throw Fault(message: "the payload has no member \(rawValue): \(form)")
        }
        guard let truth = member.truth else { throw Fault(message: "\(rawValue) is neither true nor false: \(form)") }
        return truth
    }
}
