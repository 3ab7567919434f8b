import { countArrows } from './count-arrows.ts'

// Prints the number of dependencies inside the large folders of the service:
//
//   ./dev node tools/arrows/main.ts [folder ...]

const named = process.argv.slice(2)
const totals = { arrows: 0, upward: 0 }
for (const name of named.length > 0 ? named : ['credits', 'limits', 'inference']) {
  const { arrows, upward } = await countArrows(name)
  totals.arrows += arrows
  totals.upward += upward
  console.log(`${name}: ${arrows} arrows, ${upward} of them upwards`)
}
console.log(`all: ${totals.arrows} arrows, ${totals.upward} of them upwards`)
