/** Bytes for people: as a tree where they are JSON, as text where they are text, as hexadecimal always. Never as anything that runs. */
import { Button, Group, SegmentedControl, Text } from '@mantine/core'
import { useMemo, useState } from 'react'
import { bytesOf, type TextEncoding } from '../../../src/client/bytes.ts'
import { hexRowCount, hexRows } from '../kit/hex.ts'
import { hasUnseen, visible } from '../kit/visible.ts'
import { byteSize, grouped } from '../time/format.ts'
import { jsonRoot } from './exact-json.ts'
import { JsonTree } from './json-tree.tsx'

type View = 'tree' | 'text' | 'hex'

/** More than these is shown only on request: it may be megabytes. */
const MOST_CHARACTERS = 200_000
const HEX_ROWS = 256

export interface PayloadViewProps {
  readonly text: string
  readonly encoding: TextEncoding
  /** For screen readers. */
  readonly label: string
}

export function PayloadView({ text, encoding, label }: PayloadViewProps) {
  const isText = encoding === 'utf8'
  const root = useMemo(() => (isText ? jsonRoot(text) : null), [isText, text])
  const hidesSome = useMemo(() => isText && hasUnseen(text), [isText, text])
  const [chosen, setChosen] = useState<View | null>(null)
  const possible: readonly View[] =
    root !== null ? ['tree', 'text', 'hex'] : isText ? ['text', 'hex'] : ['hex']
  const [first = 'hex'] = possible
  const view = chosen !== null && possible.includes(chosen) ? chosen : first
  if (text === '') return <Text size="sm">Empty.</Text>
  return (
    <div>
      {possible.length > 1 && (
        <SegmentedControl
          size="xs"
          mb="xs"
          aria-label={`${label} as`}
          data={possible.map((value) => ({ value, label: TITLES[value] }))}
          value={view}
          onChange={(value) => setChosen(value as View)}
        />
      )}
      {view !== 'hex' && hidesSome && (
        <Text size="sm" mb="xs">
          Characters that cannot be seen, or that turn the direction of the text, are written out, such as{' '}
          <code>\\u202E</code>. Hex shows every byte.
        </Text>
      )}
      {view === 'tree' && root !== null && <JsonTree key={text} text={text} root={root} />}
      {view === 'text' && <TextView text={text} />}
      {view === 'hex' && <HexView text={text} encoding={encoding} />}
    </div>
  )
}

const TITLES: Readonly<Record<View, string>> = { tree: 'Tree', text: 'Text', hex: 'Hex' }

/** Text as it is; of a long one the beginning. */
export function TextView({ text }: { readonly text: string }) {
  const [isAll, setAll] = useState(false)
  const isCut = text.length > MOST_CHARACTERS && !isAll
  return (
    <>
      <pre className="bytes framed">{visible(isCut ? text.slice(0, MOST_CHARACTERS) : text)}</pre>
      {isCut && (
        <Group gap="xs" mt="xs">
          <Text size="sm">The first {grouped(MOST_CHARACTERS)} characters.</Text>
          <Button size="compact-sm" variant="default" onClick={() => setAll(true)}>
            Show all {grouped(text.length)}
          </Button>
        </Group>
      )}
    </>
  )
}

function HexView({ text, encoding }: Pick<PayloadViewProps, 'text' | 'encoding'>) {
  const bytes = useMemo(() => bytesOf(text, encoding), [text, encoding])
  const [rows, setRows] = useState(HEX_ROWS)
  const all = hexRowCount(bytes)
  return (
    <>
      <pre className="bytes hex framed">
        {hexRows(bytes, rows)
          .map(({ offset, digits, characters }) => `${offset}  ${digits}  ${characters}`)
          .join('\n')}
      </pre>
      {rows < all && (
        <Group gap="xs" mt="xs">
          <Text size="sm">
            {grouped(rows)} of {grouped(all)} rows, {byteSize(bytes.length)} in all.
          </Text>
          <Button size="compact-sm" variant="default" onClick={() => setRows(rows * 4)}>
            Show more
          </Button>
        </Group>
      )}
    </>
  )
}
