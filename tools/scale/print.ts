import { readOptions } from '../help/read-options.ts'
import { readCosts } from './costs.ts'
import { scaleTables } from './scale-tables.ts'

// `./dev bench scale`: the tables of docs/scale.md, from what the last benchmark has written to bench/costs.json.

readOptions('bench scale', {})
for (const table of Object.values(scaleTables(await readCosts()))) console.log(`${table}\n`)
