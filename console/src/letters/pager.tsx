/** Which rows of how many are shown, and the way to the others. */
import { Button, Group, Text } from '@mantine/core'
import { grouped } from '../time/format.ts'
import type { LetterList } from './use-letter-list.ts'

export function Pager({ list }: { readonly list: LetterList }) {
  const { rows, from, total, next, previous } = list
  const of = total === null ? '' : ` of ${total.exact ? '' : 'at least '}${grouped(total.total)}`
  return (
    <Group gap="xs" wrap="nowrap">
      <Text size="sm" className="numbers">
        {rows.length === 0 ? 'No rows' : `${grouped(from)}–${grouped(from + rows.length - 1)}${of}`}
      </Text>
      <Button.Group>
        <PageButton title="Previous" go={previous} why="This is the first page." />
        <PageButton title="Next" go={next} why="This is the last page." />
      </Button.Group>
    </Group>
  )
}

interface PageButtonProps {
  readonly title: string
  readonly go: (() => void) | null
  readonly why: string
}

/** Stays where it is, and in the order of focus, when there is nothing to go to. */
function PageButton({ title, go, why }: PageButtonProps) {
  return (
    <Button
      size="compact-sm"
      variant="default"
      aria-disabled={go === null}
      {...(go === null ? { 'data-disabled': true, 'aria-description': why, title: why } : {})}
      onClick={() => go?.()}
    >
      {title}
    </Button>
  )
}
