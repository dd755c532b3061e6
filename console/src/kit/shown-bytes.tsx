/** Bytes on the page, as text or as hexadecimal numbers; never as anything that a browser would act on. */
import { Button, Group, Text } from '@mantine/core'
import { useState } from 'react'
import { byteSize } from '../time/format.ts'
import { readBytes } from './read-bytes.ts'
import { hasUnseen, visible } from './visible.ts'

/** So much is shown at first. */
const FIRST_BYTES = 4_096
/** Browsers become slow with more. */
const MOST_BYTES = 1_048_576

export function ShownBytes({ bytes, label }: { readonly bytes: Uint8Array; readonly label: string }) {
  const [isWhole, setWhole] = useState(false)
  if (bytes.length === 0)
    return (
      <Text size="sm" c="var(--quiet)">
        {label}: empty
      </Text>
    )
  const { form, text, size, isCut } = readBytes(bytes, isWhole ? MOST_BYTES : FIRST_BYTES)
  return (
    <div>
      <Group gap="xs" mb={4}>
        <Text size="sm" c="var(--quiet)">
          {label}: {byteSize(size)}
          {form === 'hex' ? ', no text' : ''}
          {isCut && isWhole ? `; the first ${byteSize(MOST_BYTES)} are shown` : ''}
        </Text>
        {isCut && !isWhole && (
          <Button size="compact-xs" variant="default" onClick={() => setWhole(true)}>
            Show all of it
          </Button>
        )}
      </Group>
      {form === 'text' && hasUnseen(text) && (
        <Text size="sm" mb={4}>
          Characters that cannot be seen, or that turn the direction of the text, are written out, such as
          \u202E.
        </Text>
      )}
      <pre className="bytes">{form === 'text' ? visible(text) : text}</pre>
    </div>
  )
}
