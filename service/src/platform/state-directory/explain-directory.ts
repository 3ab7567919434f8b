export const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error ? String(error.code) : ''

/** What is wrong, and what to do about it. */
type Explanation = readonly [fault: string, remedy: string]

const notWritable = (): Explanation => [
  `this process, of user ${process.getuid?.() ?? 'unknown'}, may not write there`,
  'Give the directory to that user',
]
const notDirectory: Explanation = [
  'it is not a directory, or something above it is none',
  'Correct the path',
]

const explanations: Record<string, () => Explanation> = {
  ENOSPC: () => ['its disk is full', 'Free space on that disk'],
  EDQUOT: () => ['the quota of its disk is used up', 'Raise the quota'],
  EFBIG: () => ['files may not become large enough there', 'Raise the limit of file sizes'],
  EROFS: () => ['its file system is read-only', 'Mount it so that it can be written'],
  EACCES: notWritable,
  EPERM: notWritable,
  ENOTDIR: () => notDirectory,
  EEXIST: () => notDirectory,
  ENOENT: () => ['it does not exist', 'Create it, or mount its volume'],
  ETIMEDOUT: () => ['it has not answered for 10 seconds', 'Look after its disk or its network'],
}

const nameOf = (directory: string) => `STATE_DIRECTORY (${directory})`

/** A failure of the file system as a sentence for operators. */
export function explainDirectory(directory: string, error: unknown): string {
  const code = codeOf(error)
  const [fault, remedy] = explanations[code]?.() ?? [
    'files cannot be written there',
    'Look after its disk',
  ]
  const detail = code === '' ? '' : ` (${code})`
  return `${nameOf(directory)} cannot be used: ${fault}${detail}. ${remedy}, or set STATE_DIRECTORY to another directory.`
}

export const explainSpecial = (directory: string, fileSystem: string) =>
  `${nameOf(directory)} cannot be used: it is in the special file system ${fileSystem}, which keeps no files. Set STATE_DIRECTORY to a directory on a disk.`

export const explainForeign = (directory: string, marked: string, databaseId: string) =>
  `${nameOf(directory)} belongs to another database: its file "database" names ${marked}, and this database is ${databaseId}. ` +
  'Set STATE_DIRECTORY to a directory of its own, or correct DATABASE_URL. If the other database is gone for good, remove that file; ' +
  'the others there are copies, and charges and events that still wait (settlements-*, unbilled-settlements-*, events-*).'

export const explainEmptied = (directory: string) =>
  `${nameOf(directory)} was emptied, or its volume is not mounted: its file "database" is gone. ` +
  'Mount the volume. If the directory is to be used as it is, restart the process.'
