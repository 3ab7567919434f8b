/** A heap of numbers, smallest first. It reuses its memory. */
export function createMinHeap() {
  let items = new Float64Array(1024)
  let size = 0

  function grow() {
    const larger = new Float64Array(items.length * 2)
    larger.set(items)
    items = larger
  }

  const at = (index: number) => items[index] ?? Infinity

  function sink(item: number) {
    let index = 0
    for (;;) {
      let child = 2 * index + 1
      if (child >= size) break
      if (child + 1 < size && at(child + 1) < at(child)) child++
      if (at(child) >= item) break
      items[index] = at(child)
      index = child
    }
    items[index] = item
  }

  return {
    push(item: number) {
      if (size === items.length) grow()
      let index = size++
      while (index > 0) {
        const parent = (index - 1) >> 1
        if (at(parent) <= item) break
        items[index] = at(parent)
        index = parent
      }
      items[index] = item
    },
    /** Undefined when the heap is empty. */
    pop(): number | undefined {
      if (size === 0) return undefined
      const top = at(0)
      size--
      if (size > 0) sink(at(size))
      return top
    },
  }
}
