extension FuzzTarget {
    /// A planted fault, which the fuzzer must find before it runs the other targets.
    ///
    /// Each right byte leads to a branch of its own. A fuzzer that sees coverage finds them one by one; by chance one input
    /// in 2⁶⁴ has all eight.
    static let control = FuzzTarget("control", upTo: 64) { bytes in
        guard bytes.count >= 8 else { return }
        guard bytes[0] == 0x70 else { return }
        guard bytes[1] == 0x6C else { return }
        guard bytes[2] == 0x61 else { return }
        guard bytes[3] == 0x6E else { return }
        guard bytes[4] == 0x74 else { return }
        guard bytes[5] == 0x65 else { return }
        guard bytes[6] == 0x64 else { return }
        check(bytes[7] != 0x21, "the planted fault of the control")
    }
}
