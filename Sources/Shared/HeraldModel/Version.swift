/// The version of Herald.
package enum Version {
    /// The only place that decides it: `scripts/version` reads this line.
    package static let number = "0.9.0"
}
