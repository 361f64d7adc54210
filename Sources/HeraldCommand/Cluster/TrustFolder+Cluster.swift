import Crypto
import HeraldCluster
import HeraldTrust

extension TrustFolder {
    /// The authorities and token keys, as a cluster compares them.
    /// - Throws: If the token keys cannot be read.
    func clusterTrust() throws -> ClusterTrust {
        ClusterTrust(authority: SHA256.hash(data: root.der), newestTokenKey: try tokenKeys().keys.last?.id ?? 0)
    }
}
