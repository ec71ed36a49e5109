package dialect

import (
	"errors"

	"github.com/ardanlabs/jinja"
)

func mAppend(a args) (Value, error) {
	l := a.pos[0].AsList()
	if l.Len() >= maxListItems {
		return empty, errList
	}
	for _, v := range a.pos[1:] {
		l.Append(v)
	}
	return jinja.None(), nil
}

func mExtend(a args) (Value, error) {
	more, _ := a.get(1, "")
	vs := items(more)
	l := a.pos[0].AsList()
	if l.Len()+len(vs) > maxListItems {
		return empty, errList
	}
	l.Items = append(l.Items, vs...)
	return jinja.None(), nil
}

func mInsert(a args) (Value, error) {
	if len(a.pos) < 3 {
		return empty, errors.New("insert takes a place and a value")
	}
	l := a.pos[0].AsList()
	i := int(a.int(1, "", 0))
	if i < 0 {
		i += l.Len()
	}
	i = min(max(i, 0), l.Len())
	l.Items = append(l.Items, jinja.None())
	copy(l.Items[i+1:], l.Items[i:])
	l.Items[i] = a.pos[2]
	return jinja.None(), nil
}

func mPopItem(a args) (Value, error) {
	l := a.pos[0].AsList()
	i := int(a.int(1, "", -1))
	if i < 0 {
		i += l.Len()
	}
	if i < 0 || i >= l.Len() {
		return empty, errors.New("pop from outside the list")
	}
	v := l.Items[i]
	l.Items = append(l.Items[:i:i], l.Items[i+1:]...)
	return v, nil
}

func mIndexOf(a args) (Value, error) {
	want, _ := a.get(1, "")
	for i, v := range a.pos[0].AsList().Items {
		if equal(v, want) {
			return jinja.NewInt(int64(i)), nil
		}
	}
	return empty, errors.New("value not in list")
}

func mCountOf(a args) (Value, error) {
	want, _ := a.get(1, "")
	n := int64(0)
	for _, v := range a.pos[0].AsList().Items {
		if equal(v, want) {
			n++
		}
	}
	return jinja.NewInt(n), nil
}

func mGet(a args) (Value, error) {
	if v, ok := a.pos[0].AsDict().Get(a.text(1, "key", "")); ok {
		return v, nil
	}
	if v, ok := a.get(2, "default"); ok {
		return v, nil
	}
	return jinja.None(), nil
}

func mItems(a args) (Value, error) {
	d := a.pos[0].AsDict()
	pairs := make([]Value, len(d.Keys))
	for i, k := range d.Keys {
		pairs[i] = list([]Value{str(k), d.Data[k]})
	}
	return list(pairs), nil
}

func mValues(a args) (Value, error) {
	d := a.pos[0].AsDict()
	vs := make([]Value, len(d.Keys))
	for i, k := range d.Keys {
		vs[i] = d.Data[k]
	}
	return list(vs), nil
}

func mPopKey(a args) (Value, error) {
	d, key := a.pos[0].AsDict(), a.text(1, "key", "")
	v, ok := d.Get(key)
	if !ok {
		if v, ok = a.get(2, "default"); ok {
			return v, nil
		}
		return empty, errors.New("pop of a key that is not there")
	}
	delete(d.Data, key)
	keys := make([]string, 0, len(d.Keys))
	for _, k := range d.Keys {
		if k != key {
			keys = append(keys, k)
		}
	}
	d.Keys = keys
	return v, nil
}

func mUpdate(a args) (Value, error) {
	d := a.pos[0].AsDict()
	if more, ok := a.get(1, ""); ok && more.IsDict() {
		m := more.AsDict()
		for _, k := range m.Keys {
			d.Set(k, m.Data[k])
		}
	}
	return jinja.None(), nil
}

func mSetDefault(a args) (Value, error) {
	d, key := a.pos[0].AsDict(), a.text(1, "key", "")
	if !d.Has(key) {
		v, ok := a.get(2, "default")
		if !ok {
			v = jinja.None()
		}
		d.Set(key, v)
	}
	v, _ := d.Get(key)
	return v, nil
}

func mCopy(a args) (Value, error) {
	v := jinja.NewDict()
	_, err := mUpdate(args{r: a.r, pos: []Value{v, a.pos[0]}})
	return v, err
}
