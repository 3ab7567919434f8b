import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { packRankTable } from '#tokens/packed-ranks.ts'
import { encodings, loadRanks } from '#tokens/ranks.ts'

// Writes the tables of the token counter into the folder that its argument names. The build runs it.

const [folder = ''] = process.argv.slice(2)
await mkdir(folder, { recursive: true })
for (const encoding of encodings) {
  await writeFile(join(folder, `${encoding}.bin`), packRankTable(await loadRanks(encoding)))
}
