import { describe, expect, it } from 'vitest'
import { hexRowCount, hexRows } from './hex.ts'

describe('bytes in rows', () => {
  it('have their offset, digits and characters', () => {
    const bytes = Uint8Array.from(
      [...'Grüße, world!!!\n'].flatMap((each) => [...new TextEncoder().encode(each)]),
    )
    expect(hexRows(bytes, 10)).toEqual([
      {
        offset: '00000000',
        digits: '47 72 c3 bc c3 9f 65 2c 20 77 6f 72 6c 64 21 21',
        characters: 'Gr....e, world!!',
      },
      { offset: '00000010', digits: `21 0a${' '.repeat(42)}`, characters: '!.' },
    ])
    expect(hexRows(bytes, 1)).toHaveLength(1)
    expect([hexRowCount(bytes), hexRowCount(new Uint8Array(0))]).toEqual([2, 0])
  })
})
