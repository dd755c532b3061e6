/** JSON as a tree of lists that open. Each part is read from the text when it is opened; numbers stand as they were written. */
import { Anchor, UnstyledButton } from '@mantine/core'
import { useMemo, useState } from 'react'
import { stringOf } from '../../../src/core/json/tokens.ts'
import { visible } from '../kit/visible.ts'
import { childrenOf, type JsonChild, type JsonPlace, type JsonSpan } from './exact-json.ts'

/** As many children are shown at first, and more each time that more are asked for. */
const AT_ONCE = 100
const OPEN_DEPTH = 2
/** Counting goes no further: it reads all of them. */
const MOST_COUNTED = 1_000
const MOST_CHARACTERS = 2_000

export function JsonTree({ text, root }: { readonly text: string; readonly root: JsonSpan }) {
  return (
    <ul className="json-tree">
      <Node text={text} child={{ name: null, index: -1, span: root }} depth={0} />
    </ul>
  )
}

interface NodeProps {
  readonly text: string
  readonly child: JsonChild
  readonly depth: number
}

function Node({ text, child, depth }: NodeProps) {
  const { span } = child
  return (
    <li>
      {span.kind === 'object' || span.kind === 'array' ? (
        <Branch text={text} child={child} depth={depth} />
      ) : (
        <>
          <Name child={child} />
          <Leaf text={text} span={span} />
        </>
      )}
    </li>
  )
}

function Name({ child: { name, index } }: { readonly child: JsonChild }) {
  if (name !== null) return <span className="json-name">{visible(JSON.stringify(name))}: </span>
  return index < 0 ? null : <span className="json-index">{index}: </span>
}

function Branch({ text, child, depth }: NodeProps) {
  const { span } = child
  const [isOpen, setOpen] = useState(depth < OPEN_DEPTH)
  const count = useMemo(() => countOf(text, span), [text, span])
  const [open, close] = span.kind === 'object' ? '{}' : '[]'
  if (count === '0') {
    return (
      <>
        <Name child={child} />
        {open}
        {close}
      </>
    )
  }
  const words = span.kind === 'object' ? ['member', 'members'] : ['element', 'elements']
  return (
    <>
      <UnstyledButton className="json-opener" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <span aria-hidden>{isOpen ? '▾ ' : '▸ '}</span>
        <Name child={child} />
        {open}
        <span className="json-count">
          {' '}
          {count} {words[count === '1' ? 0 : 1]}{' '}
        </span>
        {isOpen ? '' : close}
      </UnstyledButton>
      {isOpen && (
        <>
          <Children text={text} span={span} depth={depth + 1} />
          {close}
        </>
      )}
    </>
  )
}

function Children({
  text,
  span,
  depth,
}: {
  readonly text: string
  readonly span: JsonSpan
  readonly depth: number
}) {
  const [shown, setShown] = useState(() => childrenOf(text, span, AT_ONCE))
  const more = (from: JsonPlace) => {
    const { children, next } = childrenOf(text, span, AT_ONCE, from)
    setShown((before) => ({ children: [...before.children, ...children], next }))
  }
  const { children, next } = shown
  return (
    <ul>
      {children.map((child) => (
        <Node key={child.index} text={text} child={child} depth={depth} />
      ))}
      {next !== null && (
        <li>
          <Anchor component="button" type="button" size="sm" onClick={() => more(next)}>
            Show {AT_ONCE} more
          </Anchor>
        </li>
      )}
    </ul>
  )
}

function Leaf({ text, span }: { readonly text: string; readonly span: JsonSpan }) {
  const [isAll, setAll] = useState(false)
  if (span.kind !== 'string') return <span data-kind={span.kind}>{text.slice(span.start, span.end)}</span>
  const value = stringOf(text.slice(span.start, span.end))
  const isLong = value.length > MOST_CHARACTERS && !isAll
  return (
    <span data-kind="string">
      "{visible(isLong ? value.slice(0, MOST_CHARACTERS) : value)}"
      {isLong && (
        <Anchor component="button" type="button" size="sm" onClick={() => setAll(true)}>
          {' '}
          Show all {value.length} characters
        </Anchor>
      )}
    </span>
  )
}

function countOf(text: string, span: JsonSpan): string {
  const { children, next } = childrenOf(text, span, MOST_COUNTED)
  return next === null ? String(children.length) : `more than ${MOST_COUNTED}`
}
