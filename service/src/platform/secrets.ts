import {
  createCipheriv,
  createDecipheriv,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from 'node:crypto'

/** Each purpose has a derived key of its own, so that a leaked one is of no use for the others. */
export type Purpose =
  | 'key-pepper'
  | 'address-hash'
  | 'file-authentication'
  | 'free-request-identity'
  | 'secret-encryption'

export type MasterKey = { readonly version: number; readonly bytes: Buffer }

/** The first master key encrypts and signs; the others only read what they wrote before a rotation. */
export type Keyring = readonly [MasterKey, ...MasterKey[]]

export function deriveKey(master: MasterKey, purpose: Purpose): KeyObject {
  const bytes = hkdfSync('sha256', master.bytes, Buffer.alloc(0), `gatehouse/${purpose}`, 32)
  return createSecretKey(Buffer.from(bytes))
}

/** The keys of one purpose, the current one first. */
export function deriveKeys([current, ...older]: Keyring, purpose: Purpose) {
  return [deriveKey(current, purpose), ...older.map((each) => deriveKey(each, purpose))] as const
}

const ivBytes = 12
const tagBytes = 16
const wrappedKeyBytes = ivBytes + 32 + tagBytes

export type SecretBox = {
  seal(plaintext: Buffer, context: string): Buffer
  open(sealed: Buffer, context: string): Buffer
  /** Whether the current master key has sealed it. */
  isCurrent(sealed: Buffer): boolean
}

/**
 * Envelope encryption: each secret has its own random key, wrapped by the current master key.
 * `context` names table, column, row and organization, so that a sealed value cannot be moved.
 * Layout: 2 bytes master version, wrapped key, then IV, ciphertext and tag of the secret.
 */
export function createSecretBox(keyring: Keyring): SecretBox {
  const wrappers = new Map(
    keyring.map((master) => [master.version, deriveKey(master, 'secret-encryption')]),
  )
  const findWrapper = (version: number) => {
    const key = wrappers.get(version)
    if (!key) throw new Error(`No master key with version ${version} is configured.`)
    return key
  }
  return {
    seal(plaintext, context) {
      const { version } = keyring[0]
      const header = Buffer.alloc(2)
      header.writeUInt16BE(version)
      const dataKey = randomBytes(32)
      const wrapped = encrypt(findWrapper(version), dataKey, context)
      return Buffer.concat([header, wrapped, encrypt(createSecretKey(dataKey), plaintext, context)])
    },
    open(sealed, context) {
      const wrapper = findWrapper(sealed.readUInt16BE(0))
      const dataKey = decrypt(wrapper, sealed.subarray(2, 2 + wrappedKeyBytes), context)
      return decrypt(createSecretKey(dataKey), sealed.subarray(2 + wrappedKeyBytes), context)
    },
    isCurrent: (sealed) => sealed.readUInt16BE(0) === keyring[0].version,
  }
}

function encrypt(key: KeyObject, plaintext: Buffer, context: string): Buffer {
  const iv = randomBytes(ivBytes)
  const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(Buffer.from(context))
  return Buffer.concat([iv, cipher.update(plaintext), cipher.final(), cipher.getAuthTag()])
}

function decrypt(key: KeyObject, sealed: Buffer, context: string): Buffer {
  const iv = sealed.subarray(0, ivBytes)
  // Without the length, Node would accept a tag cut down to 4 bytes.
  const decipher = createDecipheriv('aes-256-gcm', key, iv, { authTagLength: tagBytes })
    .setAAD(Buffer.from(context))
    .setAuthTag(sealed.subarray(-tagBytes))
  return Buffer.concat([decipher.update(sealed.subarray(ivBytes, -tagBytes)), decipher.final()])
}
