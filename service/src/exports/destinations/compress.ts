import { promisify } from 'node:util'
import { gzip } from 'node:zlib'

/** On another thread: a batch is up to a megabyte, and other work shares this one. */
export const compress: (text: string | Buffer) => Promise<Buffer> = promisify(gzip)
