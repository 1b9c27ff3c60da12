/* OpenSSL 3 for Swift. Swift imports no function-like macros and no variadic functions: those that
   the project needs stand below as static inline functions, named `sora_` and the name of the macro. */
#ifndef SORA_COPENSSL_H
#define SORA_COPENSSL_H

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/params.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/srtp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/time.h>

/* --- Hashes and message authentication --- */

/* A context keyed for HMAC with the named digest, to be duplicated or reset by
   EVP_MAC_init(ctx, NULL, 0, NULL). NULL when memory or the digest is missing. */
static inline EVP_MAC_CTX *sora_hmac_new(const char *digest, const uint8_t *key, size_t key_length) {
    EVP_MAC *mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    if (mac == NULL) return NULL;
    EVP_MAC_CTX *ctx = EVP_MAC_CTX_new(mac);
    EVP_MAC_free(mac); /* the context holds its own reference */
    if (ctx == NULL) return NULL;
    OSSL_PARAM params[2];
    params[0] = OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)digest, 0);
    params[1] = OSSL_PARAM_construct_end();
    /* A NULL key would mean "keep the old key", so an empty key is passed as a real pointer. */
    static const uint8_t none[1] = {0};
    if (EVP_MAC_init(ctx, key_length == 0 ? none : key, key_length, params) != 1) {
        EVP_MAC_CTX_free(ctx);
        return NULL;
    }
    return ctx;
}

/* --- Keys --- */

static inline EVP_PKEY *sora_EVP_EC_gen(const char *curve) { return EVP_EC_gen(curve); }
static inline EVP_PKEY *sora_EVP_RSA_gen(unsigned int bits) { return EVP_RSA_gen(bits); }

/* --- BIO --- */

static inline int sora_BIO_reset(BIO *b) { return (int)BIO_reset(b); }
static inline long sora_BIO_get_mem_data(BIO *b, char **data) { return BIO_get_mem_data(b, data); }
static inline void sora_BIO_set_mem_eof_return(BIO *b, int value) { BIO_set_mem_eof_return(b, value); }
static inline void sora_BIO_set_retry_read(BIO *b) { BIO_set_retry_read(b); }
static inline void sora_BIO_set_retry_write(BIO *b) { BIO_set_retry_write(b); }
static inline void sora_BIO_clear_retry_flags(BIO *b) { BIO_clear_retry_flags(b); }

/* --- TLS and DTLS --- */

static inline int sora_SSL_CTX_set_min_proto_version(SSL_CTX *c, int v) {
    return (int)SSL_CTX_set_min_proto_version(c, v);
}
static inline int sora_SSL_CTX_set_max_proto_version(SSL_CTX *c, int v) {
    return (int)SSL_CTX_set_max_proto_version(c, v);
}
static inline long sora_SSL_CTX_set_mode(SSL_CTX *c, long mode) { return SSL_CTX_set_mode(c, mode); }
static inline long sora_SSL_CTX_set_session_cache_mode(SSL_CTX *c, long mode) {
    return SSL_CTX_set_session_cache_mode(c, mode);
}
static inline int sora_SSL_CTX_set1_groups_list(SSL_CTX *c, const char *list) {
    return (int)SSL_CTX_set1_groups_list(c, list);
}
static inline int sora_SSL_CTX_set1_sigalgs_list(SSL_CTX *c, const char *list) {
    return (int)SSL_CTX_set1_sigalgs_list(c, list);
}
static inline int sora_SSL_CTX_add1_chain_cert(SSL_CTX *c, X509 *x) {
    return (int)SSL_CTX_add1_chain_cert(c, x);
}
static inline int sora_SSL_set_tlsext_host_name(SSL *s, const char *name) {
    return (int)SSL_set_tlsext_host_name(s, name);
}
static inline long sora_SSL_set_mode(SSL *s, long mode) { return SSL_set_mode(s, mode); }
static const uint64_t sora_SSL_OP_NO_QUERY_MTU = SSL_OP_NO_QUERY_MTU;
static const uint64_t sora_SSL_OP_NO_RENEGOTIATION = SSL_OP_NO_RENEGOTIATION;
static const uint64_t sora_SSL_OP_NO_TICKET = SSL_OP_NO_TICKET;
static const uint64_t sora_SSL_OP_NO_COMPRESSION = SSL_OP_NO_COMPRESSION;
static const uint64_t sora_SSL_OP_CIPHER_SERVER_PREFERENCE = SSL_OP_CIPHER_SERVER_PREFERENCE;
static inline long sora_SSL_CTX_set_max_cert_list(SSL_CTX *c, long bytes) {
    return SSL_CTX_set_max_cert_list(c, bytes);
}
static inline long sora_SSL_set_max_send_fragment(SSL *s, long bytes) {
    return SSL_set_max_send_fragment(s, bytes);
}
static inline long sora_SSL_set_mtu(SSL *s, long mtu) { return SSL_set_mtu(s, mtu); }
static inline long sora_DTLS_set_link_mtu(SSL *s, long mtu) { return DTLS_set_link_mtu(s, mtu); }
static inline int sora_DTLSv1_handle_timeout(SSL *s) { return (int)DTLSv1_handle_timeout(s); }
/* 1 and the time left in microseconds, or 0 when no timer runs. */
static inline int sora_DTLSv1_get_timeout(SSL *s, int64_t *microseconds) {
    struct timeval left = {0, 0};
    if (DTLSv1_get_timeout(s, &left) != 1) return 0;
    *microseconds = (int64_t)left.tv_sec * 1000000 + (int64_t)left.tv_usec;
    return 1;
}

/* --- Certificates --- */

static inline int sora_sk_X509_num(const STACK_OF(X509) *sk) { return sk_X509_num(sk); }
static inline X509 *sora_sk_X509_value(const STACK_OF(X509) *sk, int i) { return sk_X509_value(sk, i); }
static inline int sora_sk_GENERAL_NAME_num(const GENERAL_NAMES *sk) { return sk_GENERAL_NAME_num(sk); }
static inline GENERAL_NAME *sora_sk_GENERAL_NAME_value(const GENERAL_NAMES *sk, int i) {
    return sk_GENERAL_NAME_value(sk, i);
}

#endif
