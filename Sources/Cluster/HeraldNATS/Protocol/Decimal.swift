/// Decimal numbers as bytes.
enum Decimal {
    /// Reads digits only: no sign, no space, no more than fit.
    static func read(_ bytes: some Sequence<UInt8>) -> UInt64? {
        var number: UInt64 = 0
        var count = 0
        for byte in bytes {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return nil }
            let (tens, overflow) = number.multipliedReportingOverflow(by: 10)
            let (sum, carry) = tens.addingReportingOverflow(UInt64(byte - UInt8(ascii: "0")))
            guard !overflow, !carry else { return nil }
            number = sum
            count += 1
        }
        return count > 0 ? number : nil
    }
}
